"""Reductions over axes: sums, means, products, extrema, norms, and positions of extrema.

Outside NumPy mode MXNet has no zero-dimensional arrays: a reduction over all axes has shape (1,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value, describe
from passlib.lowering.extents import (
    concatenated,
    extent,
    flattened,
    gathered_shape,
    numbers_or_none,
    reshaped,
    vector,
)
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.real_arithmetic import element_type, is_real
from passlib.mxnet.lowering.table import table

_HALF = 2**32
"""Sums of numbers below it are exact in float64 for up to 2^21 of them."""


def integer_sum(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Add along axes, which stay as axes of size 1."""
    dtype, places = op.dtype_of(data), vector(op, *axes)
    if dtype.itemsize < 8:
        return op.cast(op.emit("ReduceSum", op.cast(data, np.int64), places, keepdims=1), dtype)
    half = op.constant_like(_HALF, data)
    above = data / half
    below = data - above * half
    high, low = (op.emit("ReduceSum", part, places, keepdims=1) for part in (above, below))
    return high * half + low


def integer_product(op: Operation, data: Value, axes: Sequence[int], count: int | None) -> Value:
    """Multiply along axes, which stay as axes of size 1: by halves, or one after the other.

    Parameters
    ----------
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
        result = first * second
        if rest:
            result = op.emit("Concat", result, *rest, axis=len(others))
        count = half + len(rest)
    # The one axis that is left is the last one; those of size 1 belong at the places of `axes`.
    return op.emit("Unsqueeze", op.emit("Squeeze", result, last), axes)


def _one_by_one(op: Operation, data: Value, axes: Sequence[int], others: Sequence[int]) -> Value:
    rows = op.emit("Transpose", data, perm=[*axes, *others])
    kept = [(axis,) for axis in range(len(axes), len(axes) + len(others))]
    rows = reshaped(op, rows, [-1, *kept])
    shape = None if rows.shape is None else rows.shape[1:]
    ones = op.emit("Expand", op.constant_like(1, data), gathered_shape(op, data, others))
    with op.body() as body:
        state, row = (body.input(name, data.dtype, shape) for name in ("product", "row"))
        body.output(state * row)
    (single,) = op.emit(
        "Scan",
        ones,
        rows,
        outputs=1,
        types=[TypeSpec(data.dtype, shape)],
        body=body.graph(),
        num_scan_inputs=1,
    )
    return op.emit("Unsqueeze", single, axes)


_Reduction = Callable[[Value, Value], Value]


def _axes(op: Operation, data: Value, name: str = "axis") -> list[int]:
    """Return the axes to reduce, counted from the front; all if none is given."""
    given = op.optional_ints(name)
    rank = op.rank_of(data)
    if not given:
        return list(range(rank))
    axes = []
    for axis in given:
        if axis is None:
            op.invalid("contains None", name)
        axes.append(op.axis(data, axis))
    if len(set(axes)) != len(axes):
        op.invalid("lists an axis twice", name)
    if name == "axis" and op.bool("exclude", False):
        return [axis for axis in range(rank) if axis not in axes]
    return sorted(axes)


def _finish(op: Operation, result: Value, axes: Sequence[int], *, keepdims: bool) -> Value:
    """Drop the reduced axes of a result that kept them; one stays if all were reduced."""
    if keepdims or not axes:
        return result
    drop = axes[1:] if len(axes) == op.rank_of(result) else axes
    return op.emit("Squeeze", result, drop) if drop else result


def reduced(onnx_operator: str, op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Reduce axes, which stay as axes of size 1; sums and products of integers wrap."""
    if op.dtype_of(data).kind in "iu":
        count = known_count(data, axes)
        if onnx_operator == "ReduceSum":
            return integer_sum(op, data, axes)
        if onnx_operator == "ReduceProd" and count != 0:
            return integer_product(op, data, sorted(axes), count)
    return op.emit(onnx_operator, data, vector(op, *axes), keepdims=1)


def known_count(data: Value, axes: Sequence[int]) -> int | None:
    """Return the number of elements that are reduced to one, None if unknown."""
    sizes = [None if data.shape is None else data.shape[axis] for axis in axes]
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) or 0 in known else None


def count_of(op: Operation, data: Value, axes: Sequence[int], dtype: np.dtype) -> Value:
    """Return the number of elements that are reduced to one, in an element type."""
    known = known_count(data, axes)
    if known is not None:
        return op.constant(known, dtype)
    parts = op.emit("Gather", op.emit("Shape", data), axes, axis=0)
    return op.cast(op.emit("ReduceProd", parts, keepdims=0), dtype)


def if_none(
    op: Operation, data: Value, axes: Sequence[int], instead: Value, result: Value
) -> Value:
    """Return ``instead`` if no elements are reduced to one, else the result."""
    known = known_count(data, axes)
    if known is None:
        return op.where(count_of(op, data, axes, np.dtype(np.int64)).equals(0), instead, result)
    return result if known else op.emit("Expand", instead, op.emit("Shape", result))


def averaged(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Return the mean of reals, NaN of no elements; the axes stay as axes of size 1."""
    mean = reduced("ReduceMean", op, data, axes)
    return if_none(op, data, axes, op.constant_like(np.nan, data), mean)


def _any_nan(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    missing = op.cast(op.emit("IsNaN", data), np.uint8)
    return op.cast(reduced("ReduceMax", op, missing, axes), np.bool_)


def extreme(onnx_operator: str, op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Take the extremum, NaN if there is any, which ONNX Runtime does not guarantee."""
    if known_count(data, axes) == 0:
        raise Misfit("an axis of size 0 has no extremum")
    result = reduced(onnx_operator, op, data, axes)
    if not is_real(op.dtype_of(data)):
        return result
    return op.where(_any_nan(op, data, axes), np.nan, result)


def _mean(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Take the mean; for integers the sum, in their own type, by integer division."""
    if is_real(op.dtype_of(data)):
        return averaged(op, data, axes)
    return reduced("ReduceSum", op, data, axes) / count_of(op, data, axes, op.dtype_of(data))


def _without_nan(
    onnx_operator: str, neutral: float, op: Operation, data: Value, axes: Sequence[int]
) -> Value:
    if is_real(op.dtype_of(data)):
        data = op.where(op.emit("IsNaN", data), neutral, data)
    return reduced(onnx_operator, op, data, axes)


_REDUCTIONS: dict[str, Callable[[Operation, Value, Sequence[int]], Value]] = {
    "sum": partial(reduced, "ReduceSum"),
    "mean": _mean,
    "prod": partial(reduced, "ReduceProd"),
    "max": partial(extreme, "ReduceMax"),
    "min": partial(extreme, "ReduceMin"),
    "nansum": partial(_without_nan, "ReduceSum", 0.0),
    "nanprod": partial(_without_nan, "ReduceProd", 1.0),
    "_square_sum": partial(reduced, "ReduceSumSquare"),
}
_ALIASES = {"sum": ("sum_axis",), "max": ("max_axis",), "min": ("min_axis",)}


def _reduction(name: str, op: Operation) -> Value:
    data = op.inputs[0]
    axes = _axes(op, data)
    result = _REDUCTIONS[name](op, data, axes) if axes else data
    return _finish(op, result, axes, keepdims=op.bool("keepdims", False))


for _name in _REDUCTIONS:
    table.register(_name, *_ALIASES.get(_name, ()))(partial(_reduction, _name))


@table.register("norm")
def norm(op: Operation) -> Value:
    """Compute the L1 norm (``ord`` 1) or L2 norm (``ord`` 2) over ``axis``.

    ``out_dtype`` is the element type of the computation and the result. Whole numbers have an L1
    norm only, in their own type, in which it may wrap; MXNet's L2 norm of them is wrong.
    """
    data = op.inputs[0]
    onnx_operator = {1: "ReduceL1", 2: "ReduceL2"}.get(op.int("ord", 2))
    if onnx_operator is None:
        op.invalid("must be 1 or 2", "ord")
    target = element_type(op, op.dtype_of(data), "out_dtype")
    axes = _axes(op, data)
    if not is_real(op.dtype_of(data)) and target == op.dtype_of(data) != np.bool_:
        if onnx_operator == "ReduceL2":
            op.unsupported("whole numbers have no L2 norm in their own type", "ord")
        sizes = op.emit("Abs", op.cast(data, np.int64))
        total = op.cast(reduced("ReduceSum", op, sizes, axes), target)
        return _finish(op, total, axes, keepdims=op.bool("keepdims", False))
    if not is_real(op.dtype_of(data)) or not is_real(target):
        op.unsupported("a norm of whole numbers has their own type", "out_dtype")
    result = reduced(onnx_operator, op, op.cast(data, target), axes)
    return _finish(op, result, axes, keepdims=op.bool("keepdims", False))


@table.register("moments")
def moments(op: Operation) -> tuple[Value, Value]:
    """Compute mean and population variance over ``axes``."""
    data = op.inputs[0]
    if not op.optional_ints("axes"):
        op.invalid("must list the axes", "axes")
    axes = _axes(op, data, "axes")
    keepdims = op.bool("keepdims", False)
    mean = _mean(op, data, axes)
    gap = data - mean
    variance = _mean(op, gap * gap, axes)
    return (
        _finish(op, mean, axes, keepdims=keepdims),
        _finish(op, variance, axes, keepdims=keepdims),
    )


@table.register("multi_sum_sq")
def multi_sum_sq(op: Operation) -> Value:
    """Sum the squares of each of n inputs: shape (n,), float32."""
    sums = [
        op.emit("ReduceSumSquare", flattened(op, op.cast(value, np.float32)), keepdims=1)
        for value in op.inputs
    ]
    return op.emit("Concat", *sums, axis=0)


def position_of(onnx_operator: str, op: Operation, data: Value, axis: int) -> Value:
    """Find the position of the first extremum, or of the first NaN, along an axis, which stays."""
    if data.shape is not None and data.shape[axis] == 0:
        raise Misfit(f"axis {axis} of size 0 has no extremum")
    place = op.emit(onnx_operator, data, axis=axis, keepdims=1)
    if is_real(op.dtype_of(data)):
        missing = op.cast(op.emit("IsNaN", data), np.uint8)
        first_missing = op.emit("ArgMax", missing, axis=axis, keepdims=1)
        place = op.where(_any_nan(op, data, [axis]), first_missing, place)
    return place


def _argument(onnx_operator: str, op: Operation) -> Value:
    """Find the position of the extremum along ``axis``, or in the flattened array.

    The result has the element type of the data.
    """
    data, axis = op.inputs[0], op.optional_int("axis")
    keepdims = op.bool("keepdims", False)
    if axis is None:
        place = position_of(onnx_operator, op, flattened(op, data), 0)
        place = op.cast(place, op.dtype_of(data))
        return reshaped(op, place, [1] * op.rank_of(data)) if keepdims else place
    axis = op.axis(data, axis)
    place = op.cast(position_of(onnx_operator, op, data, axis), op.dtype_of(data))
    return _finish(op, place, [axis], keepdims=keepdims)


table.register("argmax")(partial(_argument, "ArgMax"))
table.register("argmin")(partial(_argument, "ArgMin"))


@table.register("argmax_channel")
def argmax_channel(op: Operation) -> Value:
    """Find the position of the largest element along axis 1."""
    data = op.inputs[0]
    axis = op.axis(data, 1)
    place = op.cast(position_of("ArgMax", op, data, axis), op.dtype_of(data))
    return _finish(op, place, [axis], keepdims=False)


@table.register("all_finite", "multi_all_finite")
def all_finite(op: Operation) -> Value:
    """Return float32 1 of shape (1,) if no element of any input is infinite or NaN, else 0."""
    parts = []
    for value in op.inputs:
        wrong = op.emit("IsNaN", value) | op.emit("IsInf", value)
        parts.append(op.emit("ReduceMin", flattened(op, op.cast(~wrong, np.uint8)), keepdims=1))
    together = op.emit("Concat", *parts, axis=0)
    return op.cast(op.emit("ReduceMin", together, keepdims=1), np.float32)


@table.register("_np_cumsum", "cumsum")
def cumsum(op: Operation) -> Value:
    """Sum cumulatively along ``axis``, or over the flattened array; in ``dtype`` if given."""
    data, axis = op.inputs[0], op.optional_int("axis")
    natural = op.dtype_of(data) if op.dtype_of(data) != np.bool_ else np.dtype(np.int64)
    data = op.cast(data, element_type(op, natural))
    if axis is None:
        data, axis = flattened(op, data), 0
    return op.emit("CumSum", data, op.constant(op.axis(data, axis), np.int64))


@table.register("broadcast_to")
def broadcast_to(op: Operation) -> Value:
    """Broadcast to ``shape`` of the same rank; 0 keeps the size of an axis."""
    data, shape = op.inputs[0], op.ints("shape", ())
    if len(shape) != op.rank_of(data):
        op.invalid(f"differs in rank from the input, {describe(data)}", "shape")
    # ONNX broadcasts in both directions, so 1 keeps a size.
    return op.emit("Expand", data, [*(size or 1 for size in shape)])


@table.register("broadcast_axis", "broadcast_axes")
def broadcast_axis(op: Operation) -> Value:
    """Broadcast each of ``axis`` to the corresponding ``size``."""
    data = op.inputs[0]
    axes, sizes = numbers_or_none(op, "axis"), numbers_or_none(op, "size")
    if len(axes) != len(sizes):
        op.invalid(f"lists {len(axes)} axes for {len(sizes)} sizes", "axis")
    shape = [1] * op.rank_of(data)
    for axis, size in zip(axes, sizes, strict=True):
        shape[op.axis(data, axis)] = size
    return op.emit("Expand", data, shape)


@table.register("broadcast_like")
def broadcast_like(op: Operation) -> Value:
    """Broadcast to the shape of the second input, or ``lhs_axes`` to its ``rhs_axes``.

    One of the two alone has no effect.
    """
    data, other = op.operands(2)
    left, right = op.optional_ints("lhs_axes"), op.optional_ints("rhs_axes")
    if left is None or right is None:
        return op.emit("Expand", data, op.emit("Shape", other))
    if len(left) != len(right):
        op.invalid(f"lists {len(left)} axes for {len(right)}", "lhs_axes")
    if not left:
        op.invalid("lists no axes", "lhs_axes")
    sizes = [vector(op, 1)] * op.rank_of(data)
    for mine, its in zip(left, right, strict=True):
        if mine is None or its is None:
            op.invalid("contains None", "lhs_axes")
        sizes[op.axis(data, mine)] = extent(op, other, op.axis(other, its))
    return op.emit("Expand", data, concatenated(op, sizes))
