"""mergeSlices: merges Slices of Slices, and Slices that cover a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.book import apply_groups
from passlib.passes.standard.facts.kernels import Fused
from passlib.passes.standard.facts.nodes import Model, given, integer, operator
from passlib.passes.standard.facts.shapes import Shapes, axes_of

_END = (1 << 63) - 1


@dataclass(frozen=True)
class Part:
    """The range of a Slice: start, end and step by axis."""

    node: EditableNode
    ranges: dict[int, tuple[int, int, int]]


@graph_pass(
    name="mergeSlices",
    dialects=["onnx"],
    exact=True,
    triggers=["Slice", "Gather", "Concat", "Split"],
    joins=Joins(["clean", "simplify"], after="cancelTransposes"),
)
def merge_slices(graph: Graph) -> None:
    """Merge successive Slices, Gather and Unsqueeze of one index, and Slices that cover an axis.

    The results are a Slice, a Slice and a Split. Concats of all parts of a value become the value.
    """
    model = Model(graph)
    if model.opset >= 10:  # before, Slice has attributes
        _merge_slices(model)
    apply_groups(graph, "mergeSlices", kept=Fused(graph).names)


def _merge_slices(model: Model) -> None:
    shapes = Shapes(model)
    _split(model, shapes)
    for node in model.graph.sorted("Slice", "Unsqueeze"):
        if node in model.gone or node.control_deps:
            continue
        if operator(node) == "Slice":
            _merge(model, node, shapes)
        else:
            _keep_axis(model, node, shapes)
    _split(model, shapes)


def part_of(node: EditableNode, shapes: Shapes) -> Part | None:
    """Return the range of a Slice by axis; None if unknown."""
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
    return Part(node, dict(zip(places, zip(starts, ends, steps, strict=True), strict=True)))


def _merge(model: Model, node: EditableNode, shapes: Shapes) -> None:
    """Let a Slice take what the Slice before it takes."""
    before = node.inputs[0].node
    if operator(before) != "Slice" or before.control_deps:
        return
    ranges = _ranges_of_both(node, before, shapes)
    if ranges is not None:
        _replace(model, node.outputs[0], before.inputs[0], ranges)


def _ranges_of_both(
    node: EditableNode, before: EditableNode, shapes: Shapes
) -> dict[int, tuple[int, int, int]] | None:
    """Return what a Slice takes of what the Slice before it takes; None if one cannot take it."""
    outer, inner = part_of(node, shapes), part_of(before, shapes)
    if outer is None or inner is None:
        return None
    ranges = dict(inner.ranges)
    for axis, (start, end, step) in outer.ranges.items():
        if axis not in ranges:
            ranges[axis] = (start, end, step)
            continue
        first, last, stride = ranges[axis]
        if step != 1 or stride != 1 or min(start, end, first, last) < 0:
            return None
        ranges[axis] = (min(first + start, _END), min(last, first + end), 1)
    return ranges


def _goes_into_slices(node: EditableNode, shapes: Shapes) -> bool:
    """Whether Slices are all that uses a Slice, and take the part themselves."""
    return not node.outputs[0].is_output and all(
        operator(user) == "Slice"
        and not user.control_deps
        and place == 0
        and _ranges_of_both(user, node, shapes) is not None
        for user, place in node.outputs[0].uses
    )


def _replace(
    model: Model,
    value: EditableValue,
    source: EditableValue,
    ranges: dict[int, tuple[int, int, int]],
) -> None:
    inputs = [source]
    numbers = (*zip(*ranges.values(), strict=True),)
    lists = {"starts": numbers[0], "ends": numbers[1], "axes": tuple(ranges)}
    if any(step != 1 for step in numbers[2]):
        lists["steps"] = numbers[2]
    for what, items in lists.items():
        array = np.array(items, np.int64)
        inputs.append(model.add_constant(f"{value.node.name}_{what}", array))
    model.replace(value.node, model.add_like(value, "Slice", inputs))


def _keep_axis(model: Model, node: EditableNode, shapes: Shapes) -> None:
    """Replace a Gather of one index whose axis an Unsqueeze adds again."""
    before = node.inputs[0].node
    if operator(before) != "Gather" or before.control_deps:
        return
    source = before.inputs[0]
    shape, result = shapes.shape(source), shapes.shape(node.outputs[0])
    index = model.scalar(before.inputs[1])
    if shape is None or result is None or index is None or shapes.rank(before.inputs[1]) != 0:
        return
    axis = integer(before, "axis", 0) % max(len(shape), 1)
    size = shape[axis]
    if not isinstance(size, int) or not -size <= index < size:
        return
    # Where the sizes do not tell the axes apart, the axis that was added decides.
    axes = axes_of(node, shapes)
    if axes is None or len(axes) != 1 or axes[0] % len(shape) != axis:
        return
    start = int(index) % size
    _replace(model, node.outputs[0], source, {axis: (start, start + 1, 1)})


def _split(model: Model, shapes: Shapes) -> None:
    """Replace Slices that together take all of a value by one Split."""
    found: dict[tuple[EditableValue, int], list[tuple[int, int, EditableNode]]] = {}
    for node in model.graph.sorted("Slice"):
        if node.control_deps or node in model.gone:
            continue
        part, shape = part_of(node, shapes), shapes.shape(node.inputs[0])
        if part is None or shape is None or len(part.ranges) != 1:
            continue
        ((axis, (start, end, step)),) = part.ranges.items()
        size = shape[axis] if axis < len(shape) else None
        if step != 1 or not isinstance(size, int):
            continue
        first, last, _ = slice(start, end).indices(size)
        if first < last:
            found.setdefault((node.inputs[0], axis), []).append((first, last, node))
    # Parts of parts first: a Split takes the place of what they are parts of.
    for (value, axis), parts in reversed(found.items()):
        parts.sort(key=lambda part: part[:2])
        edges = [0, *(last for _, last, _ in parts)]
        size = (shapes.shape(value) or ())[axis]
        if len(parts) < 2 or edges[-1] != size or [part[0] for part in parts] != edges[:-1]:
            continue
        # Where all of them go, a Split would be one more.
        if not all(_goes_into_slices(node, shapes) for *_, node in parts):
            _replace_by_split(model, value, axis, parts)


def _replace_by_split(
    model: Model, value: EditableValue, axis: int, parts: list[tuple[int, int, EditableNode]]
) -> None:
    sizes = [last - first for first, last, _ in parts]
    wish = f"{parts[0][2].name}_split"
    inputs, attributes = [value], {"axis": axis}
    if model.opset < 13:
        attributes = {"axis": axis, "split": sizes}  # type: ignore[dict-item]
    else:
        inputs.append(model.add_constant(f"{wish}_sizes", np.array(sizes, np.int64)))
    made = model.add(wish, "Split", inputs, attributes, num_outputs=len(parts))
    for number, (_, _, node) in enumerate(parts):
        model.note_same(made.output(number), node.outputs[0])
        model.replace(node, made.output(number))
