"""Arrays created from attributes or the shape of another: zeros, ones, ranges, diagonals."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from passlib.dialects.mxnet.lowering.real_arithmetic import element_type, is_real, number_of
from passlib.dialects.mxnet.lowering.table import table
from passlib.dialects.mxnet.lowering.tensors.diagonal import diagonal_mask
from passlib.lowering import Operation, Value
from passlib.lowering.extents import concatenated, extent, reshaped, vector

__all__ = ["arange", "arange_like", "eye", "filled", "full", "linspace"]


def filled(op: Operation, number: Value) -> Value:
    """Create an array of the attribute ``shape``, each element ``number``.

    Raises
    ------
    UnsupportedError
        The shape has a 0, by which MXNet means a size that is inferred from other nodes.
    """
    shape = op.ints("shape", ())
    if not shape or 0 in shape:
        op.unsupported("leaves a size to be inferred from other nodes", "shape")
    return op.emit("Expand", number, vector(op, *shape))


def _filled_with(number: int, op: Operation) -> Value:
    return filled(op, op.constant(number, element_type(op, np.float32)))


def _like(number: float, op: Operation) -> Value:
    data = op.inputs[0]
    return op.emit("Expand", op.constant_like(number, data), op.emit("Shape", data))


table.register("_zeros")(partial(_filled_with, 0))
table.register("_ones")(partial(_filled_with, 1))
table.register("zeros_like")(partial(_like, 0.0))
table.register("ones_like")(partial(_like, 1.0))


@table.register("_full", "_npi_full")
def full(op: Operation) -> Value:
    """Create an array of ``shape`` filled with ``value``, as ``dtype``."""
    return filled(op, number_of(op, "value", 0.0, element_type(op, np.float32)))


def _progression(op: Operation, places: Value, start: float, step: float, dtype: np.dtype) -> Value:
    """Compute start + step * places; start and step are first converted to the result's type."""
    working = np.dtype(np.float64 if is_real(dtype) else np.int64)
    if working == np.int64:
        start, step = int(start), int(step)
    numbers = op.cast(places, working)
    if step != 1:
        numbers = op.emit("Mul", numbers, op.constant(step, working))
    if start != 0:
        numbers = op.emit("Add", numbers, op.constant(start, working))
    return op.cast(numbers, dtype)


def _places(op: Operation, count: Value, repeat: int) -> Value:
    """Return 0, 1, 2, ... each ``repeat`` times, ``count`` elements in total; int64."""
    number = op.emit("Reshape", count, op.constant(np.zeros(0, np.int64)))
    if count.constant is not None:
        number = op.constant(count.constant[0], np.int64)
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    places = op.emit("Range", zero, number, one)
    return places if repeat == 1 else op.emit("Div", places, op.constant(repeat, np.int64))


@table.register("_arange")
def arange(op: Operation) -> Value:
    """Count from ``start`` to ``stop`` (excluded) by ``step``, each number ``repeat`` times.

    Without ``stop`` the range is from 0 to ``start``.
    """
    if op.bool("infer_range", False):
        op.unsupported("leaves the length to be inferred from other nodes", "infer_range")
    start, stop = op.float("start", 0.0), op.optional_float("stop")
    step, repeat = op.float("step", 1.0), op.int("repeat", 1)
    if stop is None:
        start, stop = 0.0, start
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        op.unsupported("results in no finite range", "step")
    count = math.ceil((stop - start) / step)
    if count <= 0 or repeat < 1:
        op.unsupported("results in an empty range", "stop")
    places = _places(op, vector(op, count * repeat), repeat)
    return _progression(op, places, start, step, element_type(op, np.float32))


@table.register("_linspace", "_npi_linspace")
def linspace(op: Operation) -> Value:
    """Space ``num`` numbers evenly from ``start`` to ``stop``, which ``endpoint`` includes."""
    start, stop, count = op.float("start"), op.float("stop"), op.int("num")
    if count < 1:
        op.unsupported("is not positive", "num")
    gaps = count - 1 if op.bool("endpoint", True) else count
    step = (stop - start) / gaps if gaps else 0.0
    dtype = element_type(op, np.float32)
    if not is_real(dtype):
        op.unsupported("rounding to integers is not defined", "dtype")
    return _progression(op, _places(op, vector(op, count), 1), start, step, dtype)


@table.register("_contrib_arange_like", "_npx_arange_like")
def arange_like(op: Operation) -> Value:
    """Count ``start``, ``start + step``, ... in the shape of the input, or along its ``axis``.

    Each number is repeated ``repeat`` times without changing the length. The element type is the
    input's.
    """
    data, axis, repeat = op.inputs[0], op.optional_int("axis"), op.int("repeat", 1)
    if repeat < 1:
        op.unsupported("is not positive", "repeat")
    if axis is None:
        axes = range(op.rank_of(data))
        count = _product(op, [extent(op, data, position) for position in axes])
    else:
        count = extent(op, data, op.axis(data, axis))
    start, step = op.float("start", 0.0), op.float("step", 1.0)
    line = _progression(op, _places(op, count, repeat), start, step, op.dtype_of(data))
    if axis is not None or op.rank_of(data) == 1:
        return line
    if data.known:
        return reshaped(op, line, op.shape_of(data))
    return op.emit("Reshape", line, op.emit("Shape", data))


def _product(op: Operation, sizes: list[Value]) -> Value:
    joined = concatenated(op, sizes)
    if joined.constant is not None:
        return vector(op, int(np.prod(joined.constant)))
    return op.emit("ReduceProd", joined, keepdims=1)


@table.register("_eye")
def eye(op: Operation) -> Value:
    """Create (N, M) with ones on the diagonal ``k``; M of 0 means N."""
    rows, columns, k = op.int("N"), op.int("M", 0), op.int("k", 0)
    dtype = element_type(op, np.float32)
    return op.cast(diagonal_mask(op, rows, columns or rows, k), dtype)
