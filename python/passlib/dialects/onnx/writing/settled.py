"""Values computed exactly as in the file, whose type annotations therefore still hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from passlib._core import NodeTuple
from passlib.dialects.onnx.keys import ABSENT, OUTER
from passlib.dialects.onnx.schema import plain
from passlib.dialects.onnx.writing.level import Level
from passlib.dialects.onnx.writing.variables import LevelVariables
from passlib.graph.attribute_text import parse_position

__all__ = ["SettledValues"]

_MATRIX = 2
"""Elements of arrays with this many axes or more never determine a shape: shapes are vectors."""

_WITH_BIAS = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2}
"""Operators whose last input does not affect the type of the output, and its number."""

_WEIGHTED = frozenset(("Add", "BatchNormalization", "Div", "MatMul", "Mul", "PRelu", "Sub"))
"""More operators whose output type depends on the types of the inputs only, not on elements."""


class SettledValues:
    """Collects the settled values of one graph. Nodes must be added each after its inputs.

    Parameters
    ----------
    level : Level
    """

    def __init__(self, level: Level) -> None:
        self._level = level
        self._document = level.document
        self._names: dict[tuple[int, int], str] = {}
        self._other_elements: set[tuple[int, int]] = set()
        """Settled values with the type, but not the elements, that they have in the file."""

    def origins(self, entries: Sequence[tuple[int, int, int]]) -> list[str | None]:
        """Return the name of each value in the file; None unless settled with its elements."""
        keys = [(node, output) for node, output, _ in entries]
        return [None if key in self._other_elements else self._names.get(key) for key in keys]

    def __contains__(self, key: tuple[int, int]) -> bool:
        return key in self._names

    def add_variable(self, position: int, variables: LevelVariables) -> None:
        """Add a variable, which ``variables`` has already if it is a constant."""
        node, claim = self._level.nodes[position], self._level.claim(position)
        name, outer = node.name, node.attrs.get(OUTER)
        if name == ABSENT:
            self._names[position, 0] = ""
        elif outer is not None:
            slot = parse_position(outer)
            if slot is not None and name in self._level.around.origins[slot : slot + 1]:
                self._names[position, 0] = name
        elif claim in self._document.inputs:
            self._names[position, 0] = str(self._document.inputs[claim][0].name)
        elif claim in self._document.tensors and claim not in variables.retyped:
            tensor = self._document.tensors[claim]
            self._names[position, 0] = tensor.name
            changed = claim in variables.changed
            if changed and tensor.array is not None and tensor.array.ndim < _MATRIX:
                self._other_elements.add((position, 0))

    def add_operator(self, position: int, written: Any) -> None:
        """Add an operator.

        Parameters
        ----------
        position : int
        written : onnx.NodeProto
            As written; the original itself if nothing changed.
        """
        node, original = self._level.nodes[position], self._level.original(position)
        if original is None or node.op != original.proto.op_type:
            return
        if node.attrs != original.attrs or not self._takes_the_same(node, original.proto):
            return
        if node.subgraphs and written is not original.proto:
            return  # a changed nested graph may return other values
        passed_on = any((entry[0], entry[1]) in self._other_elements for entry in node.inputs)
        for index, name in enumerate(original.proto.output):
            self._names[position, index] = str(name)
            if passed_on and name not in self._described:
                self._other_elements.add((position, index))  # it may determine a shape later

    def _takes_the_same(self, node: NodeTuple, proto: Any) -> bool:
        """Whether the inputs imply that the outputs have their types of the file."""
        formal = proto.input[:]
        entries = [entry[:2] for entry in node.inputs]
        operator = node.op if not plain(proto.domain) else ""
        if _WITH_BIAS.get(operator) == len(entries) - 1 == len(formal):
            entries.pop()
        if node.subgraphs:
            return self.origins(node.inputs)[: len(formal)] == formal and all(
                key in self._names and key not in self._other_elements for key in entries
            )
        by_elements = operator not in _WEIGHTED and operator not in _WITH_BIAS
        return len(entries) == len(formal) and all(
            self._stands_for(key, name, by_elements=by_elements)
            for key, name in zip(entries, formal, strict=True)
        )

    def _stands_for(self, key: tuple[int, int], name: str, *, by_elements: bool) -> bool:
        """Whether a value has the type of another one in the file, and its elements if asked."""
        origin = self._names.get(key)
        if origin == name:
            return not by_elements or key not in self._other_elements
        kind = self._described.get(origin or "")
        return kind is not None and kind == self._described.get(name)

    @cached_property
    def _described(self) -> dict[str, bytes]:
        """Types of values with at least two axes of known sizes, by their names in the file."""
        types = {}
        template = self._level.template
        for value in (*template.value_info, *template.input, *template.output):
            sizes = value.type.tensor_type.shape.dim
            if len(sizes) >= _MATRIX and all(d.dim_value > 0 or d.dim_param for d in sizes):
                types[str(value.name)] = value.type.SerializeToString()
        return types
