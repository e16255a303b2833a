"""Symbolic shapes of all values of a graph, and contents of small ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.arrays import dtypes
from passlib.dialects.onnx.lowering.inference import NamedType, infer_names
from passlib.dialects.onnx.tensors import CODES, ELEMENT_TYPES
from passlib.errors import GraphError
from passlib.passes.standard.facts.known import Content, Quantity, Reals, Size, at_least
from passlib.passes.standard.facts.nodes import Model, operator
from passlib.passes.standard.facts.rules.contents import MOST_ELEMENTS, content_rules
from passlib.passes.standard.facts.rules.extents import extent_rules, needed_names
from passlib.passes.standard.facts.rules.kernels import has_kernel
from passlib.passes.standard.facts.rules.reals import elements, real_rules
from passlib.passes.standard.facts.table import Key

_NOTHING = NamedType(0, None)

_REAL = ("float32", "float64")

Sizes = tuple[Quantity, ...]


class Shapes:
    """Facts about the values of a graph that hold for all open dimensions.

    ONNX's inference names unknown dimensions. The rules express the dimensions of results of
    Reshape, Concat, Slice, Pad, Conv and similar operators, and the elements of small integer
    tensors, by the names of input dimensions. The main graph must not change meanwhile.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._table = model.table
        self._constants: dict[str, Content | None] = {}
        order = [node for node in model.graph.sorted() if not node.is_variable]
        names = [node.name for node in order]
        if not self._table.inferred.issuperset(names):
            self._infer(names)
        if self._visit_new(order, names):
            self._table.revisit()
            self._visit_new(order, names)

    def _visit_new(self, order: list[EditableNode], names: list[str]) -> bool:
        """Apply rules to operators; return whether a dimension proved positive."""
        before = len(self._table.positive)
        for node, name in zip(order, names, strict=True):
            if name not in self._table.visited:
                self._table.visited.add(name)
                self._visit(node)
                if not self._table.empty_errors:
                    self._table.positive.update(needed_names(node, self))
        return len(self._table.positive) > before

    def _infer(self, names: list[str]) -> None:
        graph = self.model.graph
        plain = graph.plain()
        weights = {name: graph.args[name] for name in plain.list_inputs() if name in graph.args}
        try:
            stated = infer_names(plain, weights)
        except GraphError:  # running the model will report it
            stated = {}
        self._table.restart(stated)
        self._table.inferred.update(names)

    def shape(self, value: EditableValue | None) -> Sizes | None:
        """Return the dimensions of a value; None for an unknown rank."""
        if value is None:
            return None
        key = (value.node.name, value.index)
        known = self._table.shapes.get(key)
        if known is not None and not value.node.is_variable:
            return known
        sizes = self._type(value).sizes
        if sizes is None:
            return None
        return tuple(
            size if isinstance(size, int) else self._size(key, axis, size)
            for axis, size in enumerate(sizes)
        )

    def is_positive(self, size: Quantity) -> bool:
        """Whether a dimension is positive whenever the model runs."""
        if at_least(size, 1):
            return True
        names = [] if isinstance(size, int) else [set(monomial) for monomial, _ in size.terms]
        return at_least(size, 0) and any(found <= self._table.positive for found in names)

    def rank(self, value: EditableValue | None) -> int | None:
        """Return the rank of a value, or None."""
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def dtype(self, value: EditableValue) -> np.dtype[Any] | None:
        """Return the dtype of a value; None if unknown or not numeric."""
        name = ELEMENT_TYPES.get(self._type(value).code)
        return None if name is None else dtypes.as_dtype(name)

    def runs(self, op: str, value: EditableValue) -> bool:
        """Whether ONNX Runtime has a kernel of an operator for the dtype of a value."""
        return has_kernel(op, self._type(value).code, self.model.opset)

    def content(self, value: EditableValue | None) -> Content | None:
        """Return the elements of a small integer tensor as int and Size, or None."""
        if value is None:
            return None
        node = value.node
        name = node.name
        if not node.is_variable:
            return self._table.contents.get((name, value.index))
        if name not in self._constants:
            self._constants[name] = _whole_elements(self.model.array(value))
        return self._constants[name]

    def real(self, value: EditableValue | None) -> Reals | None:
        """Return the elements of a small floating-point tensor as Ratio, or None."""
        if value is None:
            return None
        if not value.node.is_variable:
            return self._table.reals.get((value.node.name, value.index))
        array = self.model.array(value)
        if array is None or array.size > MOST_ELEMENTS or array.dtype.name not in _REAL:
            return None
        return elements(array)

    def _type(self, value: EditableValue) -> NamedType:
        node = value.node
        if node.is_variable:
            array = self.model.array(value)
            if array is not None:
                return NamedType(CODES.get(array.dtype.name, 0), array.shape)
        return self._table.stated.get((node.name, value.index), _NOTHING)

    def _size(self, key: Key, axis: int, name: str | None) -> Quantity:
        if name is None:
            name = f"{key[0]}:{key[1]}:{axis}"
        return self._table.meaning.get(name) or Size.named(name)

    def _visit(self, node: EditableNode) -> None:
        name = operator(node)
        outputs = node.outputs
        if name in extent_rules:
            sizes = extent_rules[name](node, self)
            if sizes is not None:
                self._learn(outputs[0], sizes)
        if name in content_rules:
            content = content_rules[name](node, self)
            if content is not None and self._fits(outputs[0], content):
                self._table.contents[node.name, 0] = content
        if name in real_rules:
            reals = real_rules[name](node, self)
            if reals is not None and self._is_representable(reals):
                self._table.reals[node.name, 0] = reals

    def _learn(self, value: EditableValue, sizes: tuple[Quantity | None, ...]) -> None:
        """Express dimensions that inference has named by those of a rule."""
        stated = self._type(value).sizes
        key = (value.node.name, value.index)
        if stated is None:
            if None not in sizes:
                self._table.shapes[key] = tuple(size for size in sizes if size is not None)
            return
        if len(stated) != len(sizes):
            return
        shape: list[Quantity] = []
        for axis, (name, size) in enumerate(zip(stated, sizes, strict=True)):
            if isinstance(name, int):
                shape.append(name)
                continue
            if size is not None and name is not None and name not in self._table.meaning:
                self._table.meaning[name] = size
            shape.append(self._size(key, axis, name) if size is None else size)
        self._table.shapes[key] = tuple(shape)

    def _fits(self, value: EditableValue, content: Content) -> bool:
        """Whether there are few elements, all within the range of the dtype."""
        dtype = self.dtype(value)
        if dtype is None or dtype.kind not in "iub" or content.size > MOST_ELEMENTS:
            return False
        if dtype.kind == "b":
            return all(item in (0, 1) for item in content.flat)
        bounds = np.iinfo(dtype)
        return all(
            not isinstance(item, int) or bounds.min <= item <= bounds.max for item in content.flat
        )

    def _is_representable(self, reals: Reals) -> bool:
        """Whether floating point represents these numbers, or rounds them to no other integer."""
        if reals.size > MOST_ELEMENTS:
            return False
        return not self._table.large_sizes or all(isinstance(r.number, int) for r in reals.flat)


def _whole_elements(array: np.ndarray[Any, Any] | None) -> Content | None:
    """Return the elements of a constant of few integers."""
    if array is None or array.size > MOST_ELEMENTS or array.dtype.kind not in "iub":
        return None
    made: Content = np.empty(array.size, object)
    made[:] = [int(item) for item in array.reshape(-1)]
    shaped: Content = made.reshape(array.shape)
    return shaped
