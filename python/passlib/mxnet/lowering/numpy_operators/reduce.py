"""Reductions over axes, averages with weights, norms, percentiles, differences and counts.

A reduction over all axes leaves an array without axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, concatenated, extent, flattened, reshaped, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.numpy_operators.arithmetic import in_bytes
from passlib.mxnet.lowering.real_arithmetic import element_type, is_real, is_true, number_of
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.reduce import (
    averaged,
    count_of,
    extreme,
    if_none,
    known_count,
    position_of,
    reduced,
)


def reduced_axes(op: Operation, data: Value) -> list[int]:
    """Return the axes to reduce, counted from the front: all for ``None``, none for ``()``.

    A scalar has the axes 0 and -1 in reductions.
    """
    given = op.optional_ints("axis")
    if given is None or (given in ((0,), (-1,)) and op.rank_of(data) == 0):
        return list(range(op.rank_of(data)))
    axes = sorted(op.axis(data, axis) for axis in given if axis is not None)
    if len(set(axes)) != len(axes):
        op.invalid("lists an axis twice", "axis")
    return axes


def finished(op: Operation, result: Value, axes: Sequence[int]) -> Value:
    """Drop the reduced axes of a result that kept them, unless ``keepdims`` is true."""
    if not axes or op.bool("keepdims", False):
        return result
    return op.emit("Squeeze", result, axes)


def is_empty(data: Value) -> bool:
    """Whether an array is known to have no elements."""
    return data.shape is not None and 0 in data.shape


def _constant_result(
    op: Operation, data: Value, axes: Sequence[int], number: float, dtype: np.dtype
) -> Value:
    """Return the result for an array without elements, in which the reduced axes stay."""
    sizes = [1 if axis in axes else size for axis, size in enumerate(op.shape_of(data))]
    return op.emit("Expand", op.constant(number, dtype), sizes)


def _refuse_initial(op: Operation) -> None:
    if op.attr("initial", "None") != "None":
        op.unsupported("MXNet 1.9.1 does not implement it", "initial")


def _accumulated(onnx_operator: str, op: Operation) -> Value:
    """Add or multiply, in ``dtype`` unless reals become integers: these are truncated last."""
    _refuse_initial(op)
    data = op.inputs[0]
    axes = reduced_axes(op, data)
    natural = np.dtype(np.int64) if op.dtype_of(data) == np.bool_ else op.dtype_of(data)
    dtype = element_type(op, natural)
    if is_empty(data):
        # MXNet fills the product with 0, too.
        return finished(op, _constant_result(op, data, axes, 0, dtype), axes)
    if is_real(dtype) or not is_real(op.dtype_of(data)):
        # MXNet multiplies bytes as 32-bit integers, whatever the result is.
        narrow = onnx_operator == "ReduceProd" and op.dtype_of(data).name in ("int8", "uint8")
        data = op.cast(data, np.int32 if narrow and not is_real(dtype) else dtype)
    result = op.cast(reduced(onnx_operator, op, data, axes) if axes else data, dtype)
    if onnx_operator == "ReduceProd":
        result = if_none(op, data, axes, op.constant(0, dtype), result)
    return finished(op, result, axes)


table.register("_np_sum")(partial(_accumulated, "ReduceSum"))
table.register("_np_prod")(partial(_accumulated, "ReduceProd"))


def _extremum(onnx_operator: str, op: Operation) -> Value:
    data = op.inputs[0]
    axes = reduced_axes(op, data)
    if any(op.sizes_of(data)[axis] == 0 for axis in axes):
        raise Misfit("an axis of size 0 has no extremum")
    _refuse_initial(op)
    if is_empty(data):
        return finished(op, _constant_result(op, data, axes, 0, op.dtype_of(data)), axes)
    return finished(op, extreme(onnx_operator, op, data, axes) if axes else data, axes)


table.register("_np_max")(partial(_extremum, "ReduceMax"))
table.register("_np_min")(partial(_extremum, "ReduceMin"))


def _logical(onnx_operator: str, of_none: bool, op: Operation) -> Value:
    data = op.inputs[0]
    axes = reduced_axes(op, data)
    if is_empty(data):
        return finished(op, _constant_result(op, data, axes, of_none, np.dtype(np.bool_)), axes)
    truth = is_true(op, data)
    if axes:
        truth = op.cast(reduced(onnx_operator, op, op.cast(truth, np.uint8), axes), np.bool_)
    return finished(op, truth, axes)


table.register("_np_all")(partial(_logical, "ReduceMin", True))
table.register("_np_any")(partial(_logical, "ReduceMax", False))


def mean_of(op: Operation, data: Value, axes: Sequence[int], dtype: np.dtype) -> Value:
    """Take the mean as ``dtype``; integers to integers by division in that type."""
    if is_real(dtype):
        data = op.cast(data, dtype)
    elif is_real(op.dtype_of(data)):
        return op.cast(reduced("ReduceMean", op, data, axes) if axes else data, dtype)
    if not axes:
        return op.cast(data, dtype)
    if is_real(dtype):
        return reduced("ReduceMean", op, data, axes)
    total = reduced("ReduceSum", op, op.cast(data, dtype), axes)
    return total / count_of(op, data, axes, dtype)


@table.register("_npi_mean")
def _mean(op: Operation) -> Value:
    _refuse_initial(op)
    data = op.inputs[0]
    axes = reduced_axes(op, data)
    natural = op.dtype_of(data) if is_real(op.dtype_of(data)) else np.dtype(np.float32)
    dtype = element_type(op, natural)
    if is_empty(data):
        return finished(op, _constant_result(op, data, axes, 0, dtype), axes)
    return finished(op, mean_of(op, data, axes, dtype), axes)


def _divisor(op: Operation, data: Value, axes: Sequence[int], dtype: np.dtype) -> Value:
    count, ddof = known_count(data, axes), op.int("ddof", 0)
    if count is not None:
        return op.constant((count - ddof) % 2**64, dtype)
    rest = count_of(op, data, axes, dtype) - ddof
    if ddof <= 0:
        return rest
    return op.where(rest < 0, rest + 2**64, rest)


def _wrapped_gaps(op: Operation, data: Value, axes: Sequence[int], dtype: np.dtype) -> Value:
    """Sum the squared gaps of integers to their mean, each step in the type of the integers."""
    own = in_bytes(op, data)
    gap = own - mean_of(op, own, axes, op.dtype_of(own))
    squares = gap * gap
    squares = op.cast(squares, np.float64 if is_real(dtype) else dtype)
    return reduced("ReduceSum", op, squares, axes) if axes else squares


def _deviation(root: bool, op: Operation) -> Value:
    """Average the squared gaps to the mean over n - ``ddof``, as an unsigned number of 64 bits.

    Sum, mean and gaps of integers wrap and are truncated in their own type.
    """
    data = op.inputs[0]
    axes = reduced_axes(op, data)
    dtype = element_type(op, op.dtype_of(data))
    half = np.dtype(np.float16)
    inexact = is_real(op.dtype_of(data)) and op.dtype_of(data) != np.float64
    working = np.dtype(np.float32 if inexact and dtype in (half, np.float32) else np.float64)
    divisor = _divisor(op, data, axes, working)
    if is_empty(data):
        number = 0.0 if np.any(divisor.constant) or not is_real(dtype) else np.nan
        return finished(op, _constant_result(op, data, axes, number, dtype), axes)
    if is_real(op.dtype_of(data)):
        wide = op.cast(data, working)
        mean = reduced("ReduceMean", op, wide, axes) if axes else wide
        gap = wide - mean
        total = gap * gap
        total = reduced("ReduceSum", op, total, axes) if axes else total
    else:
        total = op.cast(_wrapped_gaps(op, data, axes, dtype), working)
    result = total / divisor
    return finished(op, op.cast(op.emit("Sqrt", result) if root else result, dtype), axes)


table.register("_npi_var")(partial(_deviation, False))
table.register("_npi_std")(partial(_deviation, True))


def _place(onnx_operator: str, op: Operation) -> Value:
    """Find the position of the extremum along ``axis`` or of the flattened array, as int64."""
    data, axis = op.inputs[0], op.optional_int("axis")
    keepdims = op.bool("keepdims", False)
    if axis is None or op.rank_of(data) == 0:
        place = position_of(onnx_operator, op, flattened(op, data), 0)
        return reshaped(op, place, [1] * op.rank_of(data) if keepdims else [])
    axis = op.axis(data, axis)
    if is_empty(data) and op.shape_of(data)[axis]:
        place = _constant_result(op, data, [axis], 0, np.dtype(np.int64))
    else:
        place = position_of(onnx_operator, op, data, axis)
    return place if keepdims else op.emit("Squeeze", place, [axis])


_PLACES: dict[str, Callable[[Operation], Value]] = {
    "_npi_argmax": partial(_place, "ArgMax"),
    "_npi_argmin": partial(_place, "ArgMin"),
}
for _name, _function in _PLACES.items():
    table.register(_name)(_function)


@table.register("_npx_constraint_check")
def constraint_check(op: Operation) -> Value:
    """Return true if every element is; the run fails otherwise.

    ONNX has no assertion: a place that does not exist is read, so the message is that of the
    runtime, not ``msg``.
    """
    data = op.inputs[0]
    if is_empty(data):
        return op.constant(True)
    # The 1 at the end is the result of no elements.
    checked = [flattened(op, op.cast(is_true(op, data), np.uint8)), op.constant([1], np.uint8)]
    every = op.emit("ReduceMin", op.emit("Concat", *checked, axis=0), keepdims=1)
    place = vector(op, 1) - op.cast(every, np.int64)
    return reshaped(op, op.emit("Gather", op.constant([True]), place), [])


@table.register("_npi_average")
def average(op: Operation) -> Value | tuple[Value, Value]:
    """Average over ``axis``, with weights of the data's shape or one for each place of the axis.

    ``returned`` adds the sum of the weights: without axes unless they have the data's shape.
    """
    data = op.inputs[0]
    dtype = op.dtype_of(data)
    axes = reduced_axes(op, data)
    if not op.bool("weighted", True):
        mean = averaged(op, data, axes) if is_real(dtype) else mean_of(op, data, axes, dtype)
        result = finished(op, mean if axes else data, axes)
        return (result, count_of(op, data, axes, dtype)) if op.bool("returned", False) else result
    weights = op.operands(2)[1]
    total: Value
    if op.rank_of(weights) == op.rank_of(data):
        kept = reduced("ReduceSum", op, weights, axes) if axes else weights
        total = finished(op, kept, axes)
    else:
        op.require_rank(weights, 1)
        if len(axes) != 1:
            op.unsupported("must be one axis for weights with one axis", "axis")
        shape = [-1 if axis == axes[0] else 1 for axis in range(op.rank_of(data))]
        weights = op.emit("Reshape", weights, shape)
        kept = reduced("ReduceSum", op, weights, axes)
        total = reshaped(op, kept, [])
    products = data * weights
    products = reduced("ReduceSum", op, products, axes) if axes else products
    result = finished(op, products / kept, axes)
    return (result, total) if op.bool("returned", False) else result


_MATRIX_NORMS = {0: "the largest or smallest singular value", 2: "the sum of singular values"}


@table.register("_npi_norm")
def norm(op: Operation) -> Value:
    """Compute the vector norm of order ``ord`` over ``axis``, or the Frobenius norm of matrices.

    ``flag`` is -2 for all elements, -1 for vectors, 1 for Frobenius, and 0 and 2 for norms by
    singular values, which ONNX does not compute. The default are the last two axes, or all for
    -2. One axis has vector norms whatever the flag.
    """
    data, flag, order = op.inputs[0], op.int("flag", -1), op.float("ord", 2.0)
    if flag in _MATRIX_NORMS:
        op.unsupported(f"ONNX has no operator for {_MATRIX_NORMS[flag]}", "flag")
    if not is_real(op.dtype_of(data)):
        op.unsupported(
            f"is defined for floating-point numbers, not for {op.dtype_of(data)}, whose quotients "
            "MXNet truncates; insert Cast"
        )
    axes = reduced_axes(op, data)
    if flag != -2 and op.optional_ints("axis") is None:
        axes = axes[-2:]
    if not axes:
        return op.emit("Abs", data)
    if flag == -1 and len(axes) == 2 and op.rank_of(data) > 1:
        op.unsupported("a vector norm has one axis", "axis")
    if flag not in (-2, -1, 1) and len(axes) > 1:
        op.unsupported("states no norm of matrices", "flag")
    if order == 2 or flag == -2 or (flag == 1 and len(axes) == 2):
        return finished(op, reduced("ReduceL2", op, data, axes), axes)
    size = op.emit("Abs", data)
    if order == 0:
        size = op.cast(op.cast(size, np.bool_), op.dtype_of(data))
        return finished(op, reduced("ReduceSum", op, size, axes), axes)
    if not np.isfinite(order):
        onnx_operator = "ReduceMax" if order > 0 else "ReduceMin"
        return finished(op, reduced(onnx_operator, op, size, axes), axes)
    powers = size**order
    zero = op.constant_like(0, data)
    if order < 0:
        # MXNet leaves out zeros.
        powers = op.where(size.equals(zero), zero, powers)
    total = reduced("ReduceSum", op, powers, axes)
    root = total ** (1 / order)
    if order < 0:
        root = op.where(total.equals(zero), zero, root)
    return finished(op, root, axes)


def _sorted_last(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Merge axes to the last one and sort along it."""
    rank = op.rank_of(data)
    others = [axis for axis in range(rank) if axis not in axes]
    turned = op.emit("Transpose", data, perm=[*others, *axes]) if rank > 1 else data
    rest = tuple(range(len(others), rank))
    flat = reshaped(op, turned, [*((axis,) for axis in range(len(others))), rest])
    # Where another axis is empty, TopK of ONNX Runtime 1.29 ends the process, but not along the
    # first axis.
    sizes = [op.sizes_of(data)[axis] for axis in others]
    if 0 in sizes:
        return flat
    count = extent(op, flat, len(others))
    if None in sizes:
        first = op.emit("Transpose", flat, perm=[len(others), *range(len(others))])
        ordered = op.emit("TopK", first, count, axis=0, largest=0, sorted=1, outputs=2)[0]
        return op.emit("Transpose", ordered, perm=[*range(1, len(others) + 1), 0])
    return op.emit("TopK", flat, count, axis=-1, largest=0, sorted=1, outputs=2)[0]


@table.register("_npi_percentile")
def percentile(op: Operation) -> Value:
    """Compute percentiles ``q`` over ``axis``: q's axes come first.

    ``interpolation`` between the two nearest elements is linear, or takes one of them or the mean.
    """
    data = op.inputs[0]
    dtype = np.dtype(np.float64 if op.dtype_of(data) == np.float64 else np.float32)
    axes = reduced_axes(op, data)
    if any(op.sizes_of(data)[axis] == 0 for axis in axes):
        raise Misfit("an axis without elements has no percentiles")
    number = op.optional_float("q_scalar")
    q = op.operands(2)[1] if number is None else op.constant(number, np.float64)
    q = op.cast(q, np.float64)
    if op.rank_of(q) > 1:
        raise Misfit("q has at most one axis")
    kinds = ("linear", "lower", "higher", "midpoint", "nearest")
    kind = op.string("interpolation", "linear", choices=kinds)
    ordered = op.cast(_sorted_last(op, data, axes), dtype)
    last = count_of(op, data, axes, np.dtype(np.float64)) - 1.0
    place = q / 100.0 * last
    below = op.emit("Floor", place)
    # An exact place is weighed with its neighbour, too: 0 times infinity is NaN in MXNet as well.
    beyond = below + 1.0
    above = op.emit("Ceil", place) if kind == "higher" else op.emit("Min", beyond, last)
    result = _between(op, kind, ordered, (place, below, above))
    rank = op.rank_of(ordered) - 1
    if op.rank_of(q):
        result = op.emit("Transpose", result, perm=[rank, *range(rank)])
    if not op.bool("keepdims", False) or not axes:
        return result
    first = op.rank_of(q)
    return op.emit("Unsqueeze", result, [*(axis + first for axis in axes)])


def _between(op: Operation, kind: str, ordered: Value, places: tuple[Value, Value, Value]) -> Value:
    """Interpolate sorted (..., n) at ``places``, the exact one and its neighbours: (..., q)."""

    def at(place: Value) -> Value:
        return op.emit("Gather", ordered, op.cast(place, np.int64), axis=-1)

    place, below, above = places
    if kind == "lower":
        return at(below)
    if kind == "higher":
        return at(above)
    if kind == "nearest":
        return at(op.emit("Floor", place + 0.5))
    share = place - below
    if kind == "midpoint":
        share = op.emit("Where", share > 0.0, op.constant(0.5), op.constant(0.0))
    weight = op.cast(share, op.dtype_of(ordered))
    return at(below) * (1 - weight) + at(above) * weight


def _gaps(op: Operation, data: Value, axis: int) -> Value:
    tail = op.emit("Slice", data, [1], [LAST], [axis])
    return tail - op.emit("Slice", data, [0], [-1], [axis])


@table.register("_npi_diff")
def diff(op: Operation) -> Value:
    """Subtract neighbours along ``axis``, ``n`` times."""
    data, times = op.inputs[0], op.int("n", 1)
    axis = op.axis(data, op.int("axis", -1))
    op.require_rank(data, least=1)
    size = op.sizes_of(data)[axis]
    if times < 0:
        op.invalid("is negative", "n")
    for _ in range(times if size is None else min(times, size)):
        data = _gaps(op, data, axis)
    return data


@table.register("_npi_ediff1d")
def ediff1d(op: Operation) -> Value:
    """Subtract neighbours of the flattened array, between optional beginning and end."""
    data, *rest = op.inputs
    flat = flattened(op, data)
    parts = [_gaps(op, flat, 0)] if data.shape is None or 0 not in data.shape else [flat]
    for side in ("begin", "end"):
        part: Value | None = None
        if op.bool(f"to_{side}_arr_given", False):
            if not rest:
                raise Misfit(f"it has no input for to_{side}")
            part = flattened(op, op.cast(rest.pop(0), op.dtype_of(data)))
        elif op.optional_float(f"to_{side}_scalar") is not None:
            number = number_of(op, f"to_{side}_scalar", 0.0, op.dtype_of(data))
            part = reshaped(op, number, [1])
        if part is not None:
            parts = [part, *parts] if side == "begin" else [*parts, part]
    return op.emit("Concat", *parts, axis=0)


@table.register("_npi_bincount")
def bincount(op: Operation) -> Value:
    """Count how often each number occurs, or sum its weights; at least ``minlength`` counts."""
    data = op.inputs[0]
    if is_real(op.dtype_of(data)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(data)}")
    if op.rank_of(data):
        op.require_rank(data, 1)
    places = flattened(op, op.cast(data, np.int64))
    bounds = concatenated(op, [places, vector(op, max(op.int("minlength", 0), 0) - 1)])
    size = op.emit("ReduceMax", bounds, keepdims=1) + vector(op, 1)
    if op.bool("has_weights", False):
        weights = flattened(op, op.operands(2)[1])
    else:
        weights = op.emit("Expand", op.constant_like(1, data), op.emit("Shape", places))
    zeros = op.emit("Expand", op.constant_like(0, weights), size)
    column = op.emit("Unsqueeze", places, [1])
    return op.emit("ScatterND", zeros, column, weights, reduction="add")
