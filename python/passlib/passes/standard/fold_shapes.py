"""foldShapes: computes shapes, and the 0 and -1 in shapes of Reshape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue, at_least, quotient
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, given, integer, is_copy, operator
from passlib.passes.standard.facts.shapes import Quantity, Shapes, product


@graph_pass(
    name="foldShapes",
    dialects=["onnx"],
    exact=True,
    joins=Joins(
        ["clean", "simplify"],
        after="resolveIf",
        options={"conditions": True},
        rounding={"large_sizes": False},
    ),
)
def fold_shapes(graph: Graph, *, large_sizes: bool = True, conditions: bool = False) -> None:
    """Replace computations on dimensions by their results; open dimensions stay open.

    If the target shape of a Reshape depends on open dimensions, it becomes a constant with 0 for
    dimensions of the input at the same position, and -1 for at most one other.

    Parameters
    ----------
    large_sizes : bool
        Keep computations on open dimensions in floating point, because float32 rounds above 2^24.
        If false, multiples of one open dimension are assumed to be smaller, as in `simplify`;
        products of open dimensions stay in any case.
    conditions : bool
        Also fold conditions of If, as in `simplify`, which resolves them. With a constant
        condition, ONNX Runtime may reject an error in the taken branch when it loads the model
        instead of when it runs.
    """
    model = Model(graph)
    shapes = Shapes(model, large_sizes=large_sizes)
    folding = _Folding(model, shapes)
    left = set() if conditions else _for_conditions(graph)
    computed = [value for value in shapes.computed() if value.node not in left]
    folding.note_constants([value for value in computed if not is_copy(value.node)])
    if model.opset >= 5:
        folding.note_targets(node for node in graph.sorted("Reshape") if node not in left)
    folding.finish()


def _for_conditions(graph: Graph) -> set[EditableNode]:
    """Return the operators whose results are used only by conditions of If."""
    found: set[EditableNode] = set()
    if not graph.sorted("If"):
        return found
    for node in reversed(graph.sorted()):
        uses = [use for value in node.outputs for use in value.uses]
        if any(value.is_output for value in node.outputs) or not uses:
            continue
        if all(user in found or (operator(user) == "If" and not place) for user, place in uses):
            found.add(node)
    return found


class _Folding:
    """Removes nodes only at the end, because shapes are needed until then."""

    def __init__(self, model: Model, shapes: Shapes) -> None:
        self._model = model
        self._shapes = shapes
        self._constants: list[tuple[EditableValue, np.ndarray[Any, Any]]] = []
        self._targets: list[tuple[EditableNode, list[int]]] = []

    def note_constants(self, values: Iterable[EditableValue]) -> None:
        """Note values whose elements are known."""
        for value in values:
            content, dtype = self._shapes.content(value), self._shapes.dtype(value)
            if content is not None and dtype is not None:
                self._constants.append((value, content.astype(dtype)))

    def note_targets(self, reshapes: Iterable[EditableNode]) -> None:
        """Note operators whose shapes can be constants."""
        for node in reshapes:
            target = self._target(node)
            if target is not None:
                self._targets.append((node, target))

    def finish(self) -> None:
        """Replace what was noted."""
        known = {value for value, _ in self._constants}
        unused = []
        for node, target in self._targets:
            if node.inputs[1] not in known:
                made = self._model.add_constant(f"{node.name}_shape", np.array(target, np.int64))
                unused.append(node.inputs[1].node)
                self._model.graph.connect(made, node, 1)
                # Open sizes of 0 stay 0 either way, and now 0 stands for what is copied.
                if "allowzero" in node.attrs:
                    del node.attrs["allowzero"]
        # Values that only values like them need are not made.
        inside = {value.node for value in known}
        for value, array in self._constants:
            unused.append(value.node)
            if value.is_output or any(user not in inside for user, _ in value.uses):
                made = self._model.add_constant(f"{value.node.name}_value", array)
                self._model.graph.replace(value, made)
        self._model.remove_unused(list(reversed(unused)))

    def _target(self, node: EditableNode) -> list[int] | None:
        """Return a constant shape with the same effect on every input, or None."""
        target, shape = self._shapes.content(given(node, 1)), self._shapes.shape(node.inputs[0])
        if target is None or shape is None:
            return None
        if integer(node, "allowzero", 0) and any(item == 0 for item in target.flat):
            return None
        if self._model.array(node.inputs[1]) is not None:
            return None
        found: list[int] = []
        rest: list[Quantity] = []
        for place, wanted in enumerate(target):
            if isinstance(wanted, int):
                found.append(wanted)
            elif place < len(shape) and shape[place] == wanted:
                found.append(0)
            else:
                found.append(-1)
                rest.append(wanted)
        if not rest:
            return found
        others = [size for size in found if size != -1]
        # With another size of 0 there is no size that -1 could stand for.
        if found.count(-1) != 1 or not all(size > 0 for size in others):
            return None
        same = quotient(product(shape), product(list(others))) == rest[0]
        return found if same and at_least(rest[0], 0) else None
