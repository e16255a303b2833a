"""Arrays from attributes alone: constants, ranges, identities, windows, positions.

A size of 0 is a size here, and no sizes are an array without axes.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.real_arithmetic import element_type, is_real, number_of
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.creation import filled, places_of, progression
from passlib.mxnet.lowering.tensors.diagonal import diagonal_mask


def _sizes(op: Operation, name: str = "shape") -> tuple[int, ...]:
    sizes = op.ints(name, ())
    if any(size < 0 for size in sizes):
        op.unsupported("leaves a size open", name)
    return sizes


def _filled_with(number: int, op: Operation) -> Value:
    return filled(op, op.constant(number, element_type(op, np.float32)), least=0)


table.register("_npi_zeros")(partial(_filled_with, 0))
table.register("_npi_ones")(partial(_filled_with, 1))


@table.register("_npi_full")
def full(op: Operation) -> Value:
    """Create an array of ``shape`` filled with ``value``."""
    return filled(op, number_of(op, "value", 0.0, element_type(op, np.float32)), least=0)


@table.register("_npi_full_like")
def full_like(op: Operation) -> Value:
    """Create an array of the input's shape, each element ``fill_value``."""
    data = op.inputs[0]
    number = number_of(op, "fill_value", 0.0, element_type(op, op.dtype_of(data)))
    return op.emit("Expand", number, op.emit("Shape", data))


@table.register("_npi_arange")
def arange(op: Operation) -> Value:
    """Count from ``start`` to ``stop`` (excluded) by ``step``; from 0 without ``stop``."""
    start, stop, step = op.float("start"), op.optional_float("stop"), op.float("step", 1.0)
    if op.int("repeat", 1) != 1:
        op.unsupported("must be 1", "repeat")
    if stop is None:
        start, stop = 0.0, start
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        op.invalid("results in no finite range", "step")
    places = places_of(op, vector(op, max(math.ceil((stop - start) / step), 0)), 1)
    return progression(op, places, start, step, element_type(op, np.float32))


@table.register("_npi_logspace")
def logspace(op: Operation) -> Value:
    """Raise ``base`` to ``num`` evenly spaced powers; integers are truncated last."""
    start, stop, count = op.float("start"), op.float("stop"), op.int("num")
    if count < 0:
        op.invalid("is negative", "num")
    gaps = count - 1 if op.bool("endpoint", True) else count
    step = (stop - start) / gaps if gaps > 0 else 0.0
    double = np.dtype(np.float64)
    powers = progression(op, places_of(op, vector(op, count), 1), start, step, double)
    numbers = op.constant(op.float("base", 10.0), double) ** powers
    return op.cast(numbers, element_type(op, np.float32))


@table.register("_npi_eye")
def eye(op: Operation) -> Value:
    """Create (N, M) with ones on the diagonal ``k``; M is N if it is not given."""
    rows, columns = op.int("N"), op.optional_int("M")
    columns = rows if columns is None else columns
    if min(rows, columns) < 0:
        op.invalid("is negative", "N")
    mask = diagonal_mask(op, rows, columns, op.int("k", 0))
    return op.cast(mask, element_type(op, np.float32))


@table.register("_npi_identity")
def identity(op: Operation) -> Value:
    """Create an array of ``shape`` with ones on the main diagonal.

    For other shapes than squares MXNet takes the first size n for the length of the rows, too: n
    ones, each n + 1 places after the one before, of which those beyond the array are left out.
    """
    sizes = _sizes(op)
    dtype = element_type(op, np.float32)
    if len(sizes) == 2 and sizes[0] == sizes[1]:
        return op.cast(diagonal_mask(op, *sizes, 0), dtype)
    if not sizes:
        op.invalid("must have at least one size", "shape")
    count = math.prod(sizes)
    op.affordable(count)
    places = np.arange(sizes[0]) * (sizes[0] + 1)
    flat = np.zeros(count, dtype)
    flat[places[places < count]] = 1
    return op.constant(flat.reshape(sizes))


@table.register("_npi_indices")
def indices(op: Operation) -> Value:
    """Return the position of each element of an array of ``dimensions``: (n, d0, d1, ...)."""
    sizes = _sizes(op, "dimensions")
    dtype = element_type(op, np.int32)
    if 0 in (*sizes, len(sizes)):
        return op.constant(np.zeros((len(sizes), *sizes), dtype))
    parts = []
    for axis, size in enumerate(sizes):
        line = op.emit("Range", *(op.constant(number, np.int64) for number in (0, size, 1)))
        turned = [1, *(size if own == axis else 1 for own in range(len(sizes)))]
        column = op.emit("Reshape", line, op.constant(turned, np.int64), allowzero=1)
        parts.append(op.emit("Expand", column, [1, *sizes]))
    return op.cast(op.emit("Concat", *parts, axis=0), dtype)


_WINDOWS = {
    "_npi_hanning": (0.5, 0.5, 0.0),
    "_npi_hamming": (0.54, 0.46, 0.0),
    "_npi_blackman": (0.42, 0.5, 0.08),
}
"""The weights of 1, of -cos(t) and of cos(2 t) for t from 0 to 2 pi."""


def _window(weights: tuple[float, float, float], op: Operation) -> Value:
    count = op.optional_int("M")
    dtype = element_type(op, np.float32)
    if count is None:
        op.invalid("is required", "M")
    if count < 0:
        op.invalid("is negative", "M")
    if count == 1:
        return op.constant(np.ones(1, dtype))
    if not is_real(dtype):
        op.affordable(count)
        return op.constant(np.zeros(count, dtype))  # MXNet converts the weights first
    double = np.dtype(np.float64)
    step = 2 * math.pi / (count - 1) if count else 0.0
    angle = progression(op, places_of(op, vector(op, count), 1), 0.0, step, double)
    constant, first, second = (op.constant(weight, double) for weight in weights)
    result = constant - first * op.emit("Cos", angle)
    if weights[2]:
        result = result + second * op.emit("Cos", angle + angle)
    return op.cast(result, dtype)


for _name, _weights in _WINDOWS.items():
    table.register(_name)(partial(_window, _weights))
