"""propagateCasts: merges casts with earlier casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, has_kernel
from passlib.dialects.onnx.tensors import CODES
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, can_replace, operator
from passlib.passes.standard.facts.shapes import Shapes

_MOVERS = frozenset(
    ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Gather",
     "Expand", "Tile", "SpaceToDepth", "DepthToSpace")
)  # fmt: skip
"""Operators that move elements of any type, those of their first input."""

_DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Binary digits of the significand, the first one included (IEEE 754; bfloat16 is the upper half
of float32)."""

_RANGES = {"float16": 0, "bfloat16": 1, "float32": 1, "float64": 2}
"""Classes of exponents, each within the next."""


@graph_pass(
    name="propagateCasts",
    dialects=["onnx"],
    exact=True,
    triggers=["Cast"],
    joins=Joins(["clean", "simplify"], after="removeNoOps"),
)
def propagate_casts(graph: Graph) -> None:
    """Merge a Cast with an earlier lossless one.

    Operators between the casts that only move elements, such as Transpose and Slice, then run on
    the first type. Both casts are removed if the second one returns to this type.
    """
    model = Model(graph)
    casts = graph.sorted("Cast")
    if not any(_chain(node) for node in casts):
        return
    shapes = Shapes(model)
    for node in casts:
        chain = None if node in model.gone else _chain(node)
        if chain is not None and not node.control_deps:
            _merge(model, shapes, node, *chain)


def _chain(node: EditableNode) -> tuple[EditableNode, list[EditableNode]] | None:
    """Return the Cast before a Cast, and the operators between them, last first."""
    between = []
    value = node.inputs[0]
    while operator(value.node) in _MOVERS and not value.node.control_deps:
        if not value.only_use or value.is_output:
            return None
        between.append(value.node)
        value = value.node.inputs[0]
    first = value.node
    if operator(first) != "Cast" or first.control_deps:
        return None
    return first, between


def _merge(
    model: Model,
    shapes: Shapes,
    node: EditableNode,
    first: EditableNode,
    between: list[EditableNode],
) -> None:
    source = first.inputs[0]
    types = [shapes.dtype(value) for value in (source, first.outputs[0], node.outputs[0])]
    before, middle, after = (None if each is None else each.name for each in types)
    if before is None or middle is None or after is None or not _merges(before, middle, after):
        return
    if not all(has_kernel(mover.op, CODES[before], model.opset) for mover in between):
        return
    undone = before == after
    shared = not first.outputs[0].only_use or first.outputs[0].is_output
    result = between[0].outputs[0] if between else source
    if (undone and not can_replace(node, result)) or (shared and not undone):
        return
    model.graph.connect(source, between[-1] if between else node, 0)
    for mover in between:
        shapes.retype(mover.outputs[0], before)
    if undone:
        model.replace(node, result)
    model.remove_unused([first])


def _merges(before: str, middle: str, after: str) -> bool:
    """Whether one cast from the first to the last type has the same result as two casts."""
    if not _keeps(before, middle):
        return False
    if before == after or after in _RANGES or after == "bool":
        # A number is rounded once: the first cast gives the same number.
        return True
    if _is_whole(middle):
        return True  # what does not fit is reduced modulo a power of two
    return _keeps(before, after)


def _keeps(source: str, target: str) -> bool:
    """Whether a cast to another type is lossless."""
    if source == target:
        return True
    if source == "bool":
        return target in _RANGES or _is_whole(target)
    if source in _RANGES:
        return (
            target in _RANGES
            and _RANGES[source] <= _RANGES[target]
            and _DIGITS[source] <= _DIGITS[target]
        )
    if not _is_whole(source):
        return False
    low, high = _bounds(source)
    if _is_whole(target):
        least, most = _bounds(target)
        return least <= low and high <= most
    return target in _DIGITS and max(high, -low) <= 1 << _DIGITS[target]


def _is_whole(name: str) -> bool:
    return name.removeprefix("u") in ("int8", "int16", "int32", "int64")


def _bounds(name: str) -> tuple[int, int]:
    info: Any = np.iinfo(name)
    return int(info.min), int(info.max)
