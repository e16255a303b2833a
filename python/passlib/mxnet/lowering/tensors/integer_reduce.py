"""Sums and products of integers in their own type, in which they wrap.

ONNX Runtime computes both in float64 and saturates: a sum beyond 2^53 loses digits, and one beyond
the type does not wrap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import gathered_shape, reshaped, vector

_HALF = 2**32
"""Sums of numbers below it are exact in float64 for up to 2^21 of them."""


def integer_sum(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Add along axes, which stay as axes of size 1."""
    dtype, places = op.dtype_of(data), vector(op, *axes)
    if dtype.itemsize < 8:
        total = op.emit("ReduceSum", op.cast(data, np.int64), places, keepdims=1)
        return op.cast(total, dtype)
    half = op.constant_like(_HALF, data)
    above = op.emit("Div", data, half)
    below = op.emit("Sub", data, op.emit("Mul", above, half))
    high, low = (op.emit("ReduceSum", part, places, keepdims=1) for part in (above, below))
    return op.emit("Add", op.emit("Mul", high, half), low)


def integer_product(op: Operation, data: Value, axes: Sequence[int], count: int | None) -> Value:
    """Multiply along axes, which stay as axes of size 1: by halves, or one after the other.

    Parameters
    ----------
    op : Operation
    data : Value
    axes : sequence of int
        Counted from the front, in order.
    count : int or None
        The number of elements that are multiplied to one, at least 1; None if it is unknown.
    """
    rank = op.rank_of(data)
    others = [axis for axis in range(rank) if axis not in axes]
    if count is None:
        return _one_by_one(op, data, axes, others)
    result = op.emit("Transpose", data, perm=[*others, *axes])
    result = reshaped(op, result, [*((axis,) for axis in range(len(others))), count])
    last = vector(op, len(others))
    while count > 1:
        half = count // 2
        sizes = vector(op, half, half, *[1] * (count % 2))
        first, second, *rest = op.emit(
            "Split", result, sizes, axis=len(others), outputs=2 + count % 2
        )
        result = op.emit("Mul", first, second)
        if rest:
            result = op.emit("Concat", result, *rest, axis=len(others))
        count = half + len(rest)
    # The one axis that is left is the last one; those of size 1 belong at the places of `axes`.
    single = op.emit("Squeeze", result, last)
    return op.emit("Unsqueeze", single, vector(op, *axes))


def _one_by_one(op: Operation, data: Value, axes: Sequence[int], others: Sequence[int]) -> Value:
    rows = op.emit("Transpose", data, perm=[*axes, *others])
    kept = [(axis,) for axis in range(len(axes), len(axes) + len(others))]
    rows = reshaped(op, rows, [-1, *kept])
    shape = None if rows.shape is None else rows.shape[1:]
    ones = op.emit("Expand", op.constant_like(1, data), gathered_shape(op, data, others))
    with op.body() as body:
        state, row = (body.input(name, data.dtype, shape) for name in ("product", "row"))
        body.output(op.emit("Mul", state, row))
    (single,) = op.emit(
        "Scan",
        ones,
        rows,
        outputs=1,
        types=[TypeSpec(data.dtype, shape)],
        body=body.graph(),
        num_scan_inputs=1,
    )
    return op.emit("Unsqueeze", single, vector(op, *axes))
