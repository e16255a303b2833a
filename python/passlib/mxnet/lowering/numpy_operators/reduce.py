"""Reductions over axes, all of them leaving an array without axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, reshaped, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.numpy_operators.arithmetic import in_bytes
from passlib.mxnet.lowering.real_arithmetic import element_type, is_real, is_true
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.reduce import (
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
    # The 1 at the end is what no elements amount to.
    checked = [flattened(op, op.cast(is_true(op, data), np.uint8)), op.constant([1], np.uint8)]
    every = op.emit("ReduceMin", op.emit("Concat", *checked, axis=0), keepdims=1)
    place = vector(op, 1) - op.cast(every, np.int64)
    return reshaped(op, op.emit("Gather", op.constant([True]), place), [])
