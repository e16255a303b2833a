"""Arrays created from attributes or the shape of another: zeros, ones, ranges, diagonals."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np

from passlib.arrays import dtypes
from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import concatenated, extent, reshaped, vector
from passlib.mxnet.lowering.real_arithmetic import element_type, is_real, number_of
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.diagonal import diagonal_mask

SIZES_OF = "__sizes_of__"
"""Attribute of a creating operator: for each open size a pair of variable and axis, as JSON."""


def filled(op: Operation, number: Value, least: int = 1) -> Value:
    """Create an array of the attribute ``shape``, each element ``number``.

    A size below ``least``, by which MXNet means one that is inferred from other nodes, is that of
    an axis of a variable, as `SIZES_OF` says. In NumPy mode ``least`` is 0, and the shape may be
    empty.

    Raises
    ------
    UnsupportedError
        Nothing determines such a size.
    """
    shape = op.ints("shape", ())
    sources = iter(json.loads(op.string(SIZES_OF, "[]")))
    sizes = []
    for size in shape:
        source = None if size >= least else next(sources, None)
        if size < least and source is None:
            op.unsupported("leaves a size to be inferred, which no input determines", "shape")
        value = (
            vector(op, size) if source is None else extent(op, op.variable(source[0]), source[1])
        )
        sizes.append(value)
    if not shape and least > 0:
        op.unsupported("leaves the shape to be inferred from other nodes", "shape")
    if all(size.constant is not None for size in sizes):
        return op.emit("Expand", number, concatenated(op, sizes))
    known = tuple(None if size.constant is None else int(size.constant[0]) for size in sizes)
    spec = TypeSpec(number.dtype, known)
    return op.emit("Expand", number, concatenated(op, sizes), outputs=1, types=[spec])[0]


def _filled_with(number: int, op: Operation) -> Value:
    return filled(op, op.constant(number, element_type(op, np.float32)))


def _like(number: float, op: Operation) -> Value:
    data = op.inputs[0]
    return op.emit("Expand", op.constant_like(number, data), op.emit("Shape", data))


table.register("_zeros")(partial(_filled_with, 0))
table.register("_ones")(partial(_filled_with, 1))


@table.register("_zeros_without_dtype")
def zeros_without_type(op: Operation) -> Value:
    """Create an array of zeros; ``dtype`` is MXNet's number of an element type."""
    code = op.int("dtype", -1)
    if code < 0:
        op.unsupported("leaves the element type to be inferred from other nodes", "dtype")
    return filled(op, op.constant(0, dtypes.from_code(code)))


table.register("zeros_like")(partial(_like, 0.0))
table.register("ones_like")(partial(_like, 1.0))


@table.register("_full")
def full(op: Operation) -> Value:
    """Create an array of ``shape`` filled with ``value``, as ``dtype``."""
    return filled(op, number_of(op, "value", 0.0, element_type(op, np.float32)))


def progression(op: Operation, places: Value, start: float, step: float, dtype: np.dtype) -> Value:
    """Compute start + step * places; start and step are first converted to the result's type."""
    working = np.dtype(np.float64 if is_real(dtype) else np.int64)
    if working == np.int64:
        start, step = int(start), int(step)
    numbers = op.cast(places, working)
    if step != 1:
        numbers = numbers * step
    if start != 0:
        numbers = numbers + start
    return op.cast(numbers, dtype)


def places_of(op: Operation, count: Value, repeat: int) -> Value:
    """Return 0, 1, 2, ... each ``repeat`` times, ``count`` elements in total; int64."""
    number = op.emit("Reshape", count, op.constant(np.zeros(0, np.int64)))
    if count.constant is not None:
        number = op.constant(count.constant[0], np.int64)
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    places = op.emit("Range", zero, number, one)
    return places if repeat == 1 else places / repeat


@table.register("_arange")
def arange(op: Operation) -> Value:
    """Count from ``start`` to ``stop`` (excluded) by ``step``, each number ``repeat`` times.

    Without ``stop`` the range is from 0 to ``start``.
    """
    start, stop = op.float("start", 0.0), op.optional_float("stop")
    if stop is None and op.bool("infer_range", False):
        op.unsupported("leaves the length to be inferred from other nodes", "infer_range")
    step, repeat = op.float("step", 1.0), op.int("repeat", 1)
    if stop is None:
        start, stop = 0.0, start
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        op.invalid("results in no finite range", "step")
    count = math.ceil((stop - start) / step)
    if count <= 0 or repeat < 1:
        op.invalid("results in an empty range", "stop")
    places = places_of(op, vector(op, count * repeat), repeat)
    return progression(op, places, start, step, element_type(op, np.float32))


@table.register("_linspace", "_npi_linspace")
def linspace(op: Operation) -> Value:
    """Space ``num`` numbers evenly from ``start`` to ``stop``, which ``endpoint`` includes.

    Integers are truncated.
    """
    start, stop, count = op.float("start"), op.float("stop"), op.int("num")
    if count < 0:
        op.invalid("is negative", "num")
    gaps = count - 1 if op.bool("endpoint", True) else count
    step = (stop - start) / gaps if gaps > 0 else 0.0
    dtype = element_type(op, np.float32)
    places = places_of(op, vector(op, count), 1)
    if is_real(dtype):
        return progression(op, places, start, step, dtype)
    return op.cast(progression(op, places, start, step, np.dtype(np.float64)), dtype)


@table.register("_contrib_arange_like", "_npx_arange_like")
def arange_like(op: Operation) -> Value:
    """Count ``start``, ``start + step``, ... in the shape of the input, or along its ``axis``.

    Each number is repeated ``repeat`` times without changing the length. The element type is the
    input's.
    """
    data, axis, repeat = op.inputs[0], op.optional_int("axis"), op.int("repeat", 1)
    if repeat < 1:
        op.invalid("is not positive", "repeat")
    if axis is None:
        axes = range(op.rank_of(data))
        count = _product(op, [extent(op, data, position) for position in axes])
    else:
        count = extent(op, data, op.axis(data, axis))
    start, step = op.float("start", 0.0), op.float("step", 1.0)
    line = progression(op, places_of(op, count, repeat), start, step, op.dtype_of(data))
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
    """Create (N, M) with ones on the diagonal ``k``; M of at most 0 means N."""
    rows, columns, k = op.int("N"), op.int("M", 0), op.int("k", 0)
    if rows < 0:
        op.invalid("is negative", "N")
    dtype = element_type(op, np.float32)
    return op.cast(diagonal_mask(op, rows, columns if columns > 0 else rows, k), dtype)
