"""fuseSpaceToDepth: replaces strided Slices and a Concat by SpaceToDepth."""

from __future__ import annotations

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, given, integer, operator
from passlib.passes.standard.facts.shapes import Shapes

_END = (1 << 31) - 1
"""Ends from here on are the end of the axis."""


@graph_pass(
    name="fuseSpaceToDepth",
    dialects=["onnx"],
    exact=True,
    triggers=["Slice"],
    joins=Joins(["clean", "simplify"], after="mergeConcats", rounding={"reorder_weights": True}),
)
def fuse_space_to_depth(graph: Graph, *, reorder_weights: bool = False) -> None:
    """Replace a Concat of Slices with steps in height and width by SpaceToDepth.

    If the Slices are in another order, a Gather follows.

    Parameters
    ----------
    reorder_weights : bool
        Reorder the weights of a following Conv instead of adding a Gather, which changes the order
        of its sums and thus their rounding.
    """
    model = Model(graph)
    if model.opset < 10:
        return
    found = [node for node in graph.sorted("Concat") if _is_candidate(node)]
    if not found:
        return
    shapes = Shapes(model)
    for node in found:
        _fuse(model, node, shapes, reorder_weights)


def _is_candidate(node: EditableNode) -> bool:
    count = len(node.inputs)
    return (
        count in (4, 9, 16)
        and not node.control_deps
        and all(operator(value.node) == "Slice" for value in node.inputs)
    )


def _fuse(model: Model, concat: EditableNode, shapes: Shapes, reorder: bool) -> None:
    block = int(len(concat.inputs) ** 0.5)
    sources = set()
    offsets = []
    for value in concat.inputs:
        source, ranges = _steps(value, shapes)
        sources.add(source)
        if ranges.keys() != {2, 3} or any(
            step != block or not 0 <= start < block or end < _END
            for start, end, step in ranges.values()
        ):
            return
        offsets.append((ranges[2][0], ranges[3][0]))
    source = sources.pop()
    shape = shapes.shape(source)
    if sources or shape is None or len(shape) != 4 or len(set(offsets)) != block * block:
        return
    if not shapes.runs("SpaceToDepth", source):
        return
    channels = shape[1]
    if integer(concat, "axis", 0) % 4 != 1 or not isinstance(channels, int):
        return
    order = [
        (row * block + column) * channels + channel
        for row, column in offsets
        for channel in range(channels)
    ]
    result = concat.outputs[0]
    made = model.add(
        f"{concat.name}_blocks", "SpaceToDepth", [source], {"blocksize": block}
    ).outputs[0]
    model.note_same(made, concat.outputs[0])
    if order != sorted(order) and not (reorder and _reorder(model, result, order)):
        indices = model.add_constant(f"{concat.name}_order", np.array(order, np.int64))
        made = model.add_like(result, "Gather", [made, indices], {"axis": 1})
    model.replace(concat, made)


def _steps(
    value: EditableValue, shapes: Shapes
) -> tuple[EditableValue, dict[int, tuple[int, int, int]]]:
    """Return the value that Slices take from, and what they take of each axis."""
    ranges: dict[int, tuple[int, int, int]] = {}
    while operator(value.node) == "Slice" and not value.node.control_deps:
        part = _part_of(value.node, shapes)
        if part is None or not ranges.keys().isdisjoint(part):
            break
        ranges.update(part)
        value = value.node.inputs[0]
    shape = shapes.shape(value) or ()
    known = {}
    for axis, (start, end, step) in ranges.items():
        size = shape[axis] if axis < len(shape) else None
        known[axis] = (start, _END if size is not None and end == size else end, step)
    return value, known


def _part_of(node: EditableNode, shapes: Shapes) -> dict[int, tuple[int, int, int]] | None:
    """Return start, end and step of a Slice by axis; None if unknown."""
    rank = shapes.rank(node.inputs[0])
    starts, ends = (shapes.whole(node.inputs[number]) for number in (1, 2))
    axes: list[int] | None = list(range(len(starts or ())))
    steps: list[int] | None = [1] * len(starts or ())
    if given(node, 3) is not None:
        axes = shapes.whole(node.inputs[3])
    if given(node, 4) is not None:
        steps = shapes.whole(node.inputs[4])
    if rank is None or starts is None or ends is None or axes is None or steps is None:
        return None
    places = [axis + rank if axis < 0 else axis for axis in axes]
    if not len(starts) == len(ends) == len(places) == len(steps) == len(set(places)):
        return None
    return dict(zip(places, zip(starts, ends, steps, strict=True), strict=True))


def _reorder(model: Model, value: EditableValue, order: list[int]) -> bool:
    """Put the weights of the only user, a Conv of one group, in the order of new channels."""
    if value.is_output or not value.only_use:
        return False
    conv, place = value.only_use
    weight = model.array(conv.inputs[1]) if place == 0 and operator(conv) == "Conv" else None
    if weight is None or integer(conv, "group", 1) != 1 or weight.shape[1] != len(order):
        return False
    inverse = np.argsort(order)
    old = conv.inputs[1]
    made = model.add_constant(f"{conv.name}_weight", np.ascontiguousarray(weight[:, inverse]))
    model.graph.connect(made, conv, 1)
    model.remove_unused([old.node])
    return True
