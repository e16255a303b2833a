"""rebuildShapes: builds shape tensors from as few operators as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, integer, operator
from passlib.passes.standard.facts.shapes import Quantity, Shapes

Sizes = tuple[Quantity, ...]

_WITH_RANGE = 15
"""The operator set from which on Shape can return a part of the shape."""

_MOST = 8
"""Longer lists are not taken apart in all ways."""


@graph_pass(
    name="rebuildShapes",
    dialects=["onnx"],
    exact=True,
    triggers=["Shape"],
    joins=Joins(["clean", "simplify"], after="removeDeadNodes"),
)
def rebuild_shapes(graph: Graph) -> None:
    """Rebuild shape tensors with inferred elements from parts of shapes."""
    model = Model(graph)
    shapes = Shapes(model)
    order = graph.sorted()
    roots = [value for node in order for value in node.outputs if _is_root(value, shapes)]
    if not roots:
        return
    building = _Building(model, shapes)
    building.take_sources(order, set(roots))
    unused = []
    for root in roots:
        made = building.make(root)
        if made is not None and made != root:
            graph.replace(root, made)
            unused.append(root.node)
    model.remove_unused(unused[::-1])


def _is_root(value: EditableValue, shapes: Shapes) -> bool:
    """Whether a value is a shape tensor used by an operator that computes no shape."""
    content = shapes.content(value)
    if content is None or content.ndim != 1 or not 0 < content.size <= _MOST:
        return False
    dtype = shapes.dtype(value)
    if value.node.is_variable or value.is_output or dtype is None or dtype.name != "int64":
        return False
    if all(isinstance(item, int) for item in content.flat):
        return False
    return any(shapes.content(user.outputs[0]) is None for user, _ in value.uses)


@dataclass
class _Building:
    """Makes lists of sizes, equal ones once.

    Attributes
    ----------
    sources : dict of Sizes to (EditableValue, int, int)
        For each run of sizes the first value that has it: the first axis, and the place of the
        value in the order of the graph.
    """

    model: Model
    shapes: Shapes
    sources: dict[Sizes, tuple[EditableValue, int, int]] = field(default_factory=dict)
    places: dict[EditableNode, int] = field(default_factory=dict)
    parts: dict[tuple[EditableValue, int, int], EditableValue] = field(default_factory=dict)
    lists: dict[Sizes, tuple[EditableValue, int]] = field(default_factory=dict)

    def take_sources(self, order: list[EditableNode], roots: set[EditableValue]) -> None:
        """Record the values that the model needs for more than these roots."""
        needed: set[EditableNode] = set()
        pending = [value.node for value in self.model.graph.outputs]
        while pending:
            node = pending.pop()
            if node not in needed:
                needed.add(node)
                pending += [value.node for value in node.inputs if value not in roots]
        first = [node for node in order if node.is_variable]
        for node in (*first, *(node for node in order if not node.is_variable)):
            self.places[node] = -1 if node.is_variable else len(self.places)
            is_input = node.is_variable and node.name not in self.model.graph.args
            if node in needed or is_input:
                for value in node.outputs:
                    self._take(value)
            if operator(node) == "Shape" and node in needed:
                self._take_shape(node)

    def _take(self, value: EditableValue) -> None:
        shape = self.shapes.shape(value)
        if shape is None or all(isinstance(size, int) for size in shape):
            return
        place = self.places[value.node]
        for start in range(len(shape)):
            for end in range(start + 1, len(shape) + 1):
                self.sources.setdefault(shape[start:end], (value, start, place))

    def _take_shape(self, node: EditableNode) -> None:
        shape = self.shapes.shape(node.inputs[0])
        if shape is not None:
            stated = slice(integer(node, "start", 0), integer(node, "end", len(shape)))
            start, end, _ = stated.indices(len(shape))
            self.parts[node.inputs[0], start, end] = node.outputs[0]

    def make(self, root: EditableValue) -> EditableValue | None:
        """Return a value equal to the root, made of existing and new operators."""
        content = self.shapes.content(root)
        assert content is not None
        sizes = tuple(content.flat)
        place = self.places[root.node]
        known = self.lists.get(sizes)
        if known is not None and known[1] <= place:
            return known[0]
        plan = self._plan(sizes, place)
        if plan is None:
            return None
        values = [self._part(root, piece) for piece in plan]
        made = values[0]
        if len(values) > 1:
            made = self.model.add_like(root, "Concat", values, {"axis": 0})
        self.lists[sizes] = (made, place)
        return made

    def _plan(self, sizes: Sizes, place: int) -> list[Sizes] | None:
        """Split a list into as few available runs as possible."""
        best: list[list[Sizes] | None] = [[]]
        for end in range(1, len(sizes) + 1):
            found: list[Sizes] | None = None
            for start in range(end):
                before, run = best[start], sizes[start:end]
                if before is None or not self._is_there(run, place):
                    continue
                if found is None or self._price([*before, run]) < self._price(found):
                    found = [*before, run]
            best.append(found)
        return best[-1]

    def _price(self, plan: list[Sizes]) -> tuple[int, int]:
        """Return the numbers of new operators and of runs."""
        new = 0
        for run in plan:
            if not _is_fixed(run):
                value, start, _ = self.sources[run]
                whole = self.shapes.shape(value) or ()
                steps = [(start, start + len(run)), (0, len(whole))]
                if self.model.opset >= _WITH_RANGE or steps[0] == steps[1]:
                    steps.pop()
                new += sum((value, *step) not in self.parts for step in steps)
        return new, len(plan)

    def _is_there(self, run: Sizes, place: int) -> bool:
        if _is_fixed(run):
            return True
        found = self.sources.get(run)
        return found is not None and found[2] < place

    def _part(self, root: EditableValue, run: Sizes) -> EditableValue:
        wish = f"{root.node.name}_sizes"
        if _is_fixed(run):
            return self.model.add_constant(wish, np.array(run, np.int64))
        value, start, _ = self.sources[run]
        key = (value, start, start + len(run))
        if key not in self.parts:
            self.parts[key] = self._shape(wish, *key)
        return self.parts[key]

    def _shape(self, wish: str, value: EditableValue, start: int, end: int) -> EditableValue:
        rank = self.shapes.rank(value)
        if (start, end) == (0, rank):
            return self.model.add(wish, "Shape", [value]).outputs[0]
        if self.model.opset >= _WITH_RANGE:
            attributes: dict[str, Any] = {"start": start, "end": end}
            return self.model.add(wish, "Shape", [value], attributes).outputs[0]
        assert rank is not None
        whole = (value, 0, rank)
        if whole not in self.parts:
            self.parts[whole] = self._shape(wish, *whole)
        if self.model.opset < 10:
            listed = {"starts": [start], "ends": [end], "axes": [0]}
            return self.model.add(wish, "Slice", [self.parts[whole]], listed).outputs[0]
        bounds = [
            self.model.add_constant(wish, np.array([number], np.int64)) for number in (start, end)
        ]
        return self.model.add(wish, "Slice", [self.parts[whole], *bounds]).outputs[0]


def _is_fixed(run: Sizes) -> bool:
    return all(isinstance(size, int) for size in run)
