"""Greedy non-maximum suppression, as a loop over the boxes in the order of their scores.

ONNX's own operator does not fit: it lists the survivors class by class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib.files.optional import require
from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import extent, places, vector


def ordered_by(op: Operation, key: Value, count: Value) -> Value:
    """Return positions of the ``count`` largest of each row of (B, N); equals keep their order."""
    return op.emit("TopK", key, count, outputs=2, axis=1)[1]


def picked(op: Operation, rows: Value, order: Value) -> Value:
    """Take rows (B, N, ...) in the order (B, k)."""
    index = op.emit("Unsqueeze", order, vector(op, 2))
    return op.emit("GatherND", rows, index, batch_dims=1)


def area(op: Operation, sides: Sequence[Value]) -> Value:
    """Compute the area between left, top, right and bottom; zero if a box is inverted."""
    left, top, right, bottom = sides
    return op.emit("Mul", _span(op, left, right), _span(op, top, bottom))


def overlap(
    op: Operation, a: Sequence[Value], b: Sequence[Value], a_area: Value, b_area: Value
) -> Value:
    """Compute the intersection over union of boxes given by their sides; zero for empty unions."""
    shared = area(
        op,
        [
            op.emit("Max", a[0], b[0]),
            op.emit("Max", a[1], b[1]),
            op.emit("Min", a[2], b[2]),
            op.emit("Min", a[3], b[3]),
        ],
    )
    union = op.emit("Sub", op.emit("Add", a_area, b_area), shared)
    zero = op.constant_like(0, union)
    some = op.emit("Greater", union, zero)
    safe = op.emit("Where", some, union, op.constant_like(1, union))
    return op.emit("Where", some, op.emit("Div", shared, safe), zero)


def survivors(
    op: Operation,
    sides: Sequence[Value],
    valid: Value,
    *,
    threshold: float,
    classes: Value | None,
) -> Value:
    """Find the boxes that no better surviving box overlaps, given boxes sorted best first.

    Parameters
    ----------
    sides : sequence of Value
        Left, top, right, bottom, each (B, k).
    valid : Value
        (B, k), whether a box takes part.
    threshold : float
        A box is dropped if a better surviving one overlaps it by more.
    classes : Value or None
        (B, k); only boxes of equal class compete.

    Returns
    -------
    Value
        (B, k) of flags.
    """
    if valid.shape is not None and valid.shape[1] == 0:
        return valid
    given = [*sides, area(op, sides), *([] if classes is None else [classes])]
    constants = {
        "zero": op.constant_like(0, sides[0]),
        "one": op.constant_like(1, sides[0]),
        "limit": op.constant_like(threshold, sides[0]),
        "places": op.emit("Unsqueeze", places(op, valid, 1), vector(op, 0)),
        "axis": vector(op, 1),
    }
    return op.emit(
        "Loop",
        op.emit("Squeeze", extent(op, valid, 1), vector(op, 0)),
        op.constant(True),
        valid,
        outputs=1,
        types=[TypeSpec(np.dtype(bool), valid.shape)],
        body=_round([value.name for value in given], {k: v.name for k, v in constants.items()}),
    )[0]


def _span(op: Operation, start: Value, stop: Value) -> Value:
    return op.emit("Max", op.emit("Sub", stop, start), op.constant_like(0, start))


def _round(given: Sequence[str], constants: dict[str, str]) -> Any:
    """Build one round of the loop: the current box, if it still stands, suppresses later ones.

    Everything but the flags is taken from the enclosing graph.
    """
    helper: Any = require("onnx.helper", extra="onnx")
    onnx: Any = require("onnx", extra="onnx")
    nodes = [helper.make_node("Reshape", ["turn", constants["axis"]], ["turn_at"])]

    def add(op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op_type.lower()}_{len(nodes)}"
        names = [constants.get(key, key) for key in inputs]
        nodes.append(helper.make_node(op_type, names, [name], **attributes))
        return name

    def current(name: str) -> str:
        return add("Gather", name, "turn_at", axis=1)

    left, top, right, bottom, size = given[:5]
    width = add("Sub", add("Min", right, current(right)), add("Max", left, current(left)))
    height = add("Sub", add("Min", bottom, current(bottom)), add("Max", top, current(top)))
    shared = add("Mul", add("Max", width, "zero"), add("Max", height, "zero"))
    union = add("Sub", add("Add", size, current(size)), shared)
    some = add("Greater", union, "zero")
    ratio = add("Div", shared, add("Where", some, union, "one"))
    falls = add("And", some, add("Greater", ratio, "limit"))
    if len(given) > 5:
        falls = add("And", falls, add("Equal", given[5], current(given[5])))
    falls = add("And", falls, add("Greater", "places", "turn_at"))
    falls = add("And", falls, current("standing"))
    left_standing = add("And", "standing", add("Not", falls))
    nodes.append(helper.make_node("Identity", ["go_on"], ["go_on_still"]))
    flags, number = onnx.TensorProto.BOOL, onnx.TensorProto.INT64
    return helper.make_graph(
        nodes,
        "round",
        [
            helper.make_tensor_value_info("turn", number, []),
            helper.make_tensor_value_info("go_on", flags, []),
            helper.make_tensor_value_info("standing", flags, None),
        ],
        [
            helper.make_tensor_value_info("go_on_still", flags, []),
            helper.make_tensor_value_info(left_standing, flags, None),
        ],
    )
