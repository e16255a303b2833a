"""Operators that keep 8-bit numbers, or combine those of several ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.neural.linear import embedding
from passlib.mxnet.lowering.neural.pooling import pooling
from passlib.mxnet.lowering.quantized.ranges import (
    HALF_STEPS,
    INT32_STEPS,
    WHOLE_STEPS,
    bits,
    calibrated,
    dequantized,
    in_range,
    largest,
    quantized,
    real,
    step,
    symmetric,
)
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.shape import flatten


@table.register("_contrib_quantized_flatten")
def quantized_flatten(op: Operation) -> Sequence[Value]:
    """Flatten all axes but the first; the range stays."""
    data, *bounds = op.operands(3)
    op.inputs[:] = [data]
    return flatten(op), *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_pooling")
def quantized_pooling(op: Operation) -> Sequence[Value]:
    """Pool 8-bit numbers, averages rounded to even; the range stays."""
    data, *bounds = op.operands(3)
    if op.string("pool_type", "max") not in ("max", "avg"):
        op.unsupported("MXNet quantizes maximum and average only", "pool_type")
    dtype = bits(op, data)
    op.inputs[:] = [op.cast(data, np.float32)]
    result = op.cast(op.emit("Round", pooling(op)[0]), dtype)
    return result, *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_act")
def quantized_activation(op: Operation) -> Sequence[Value]:
    """Apply max(x, 0) to int8 numbers; the range stays.

    uint8 numbers come out as the int8 numbers of the same bits, as in MXNet 1.9.1.
    """
    op.string("act_type", choices=("relu",))
    data, *bounds = op.operands(3)
    if bits(op, data) == "uint8":
        result = op.cast(data, np.int8)
    else:
        result = op.emit("Max", data, op.constant(0, np.int8))
    return result, *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_embedding")
def quantized_embedding(op: Operation) -> Sequence[Value]:
    """Look up rows of an 8-bit table; the range stays."""
    data, weight, *bounds = op.operands(4)
    op.inputs[:] = [data, weight]
    return embedding(op), *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_elemwise_add")
def quantized_add(op: Operation) -> Sequence[Value]:
    """Add 8-bit arrays; the result has the calibrated range, or is int32 with the sum of ranges.

    It is uint8 if both operands are.
    """
    left, right, *bounds = op.operands(6)
    dtypes = [bits(op, value) for value in (left, right)]
    limits = calibrated(op)
    reach = [largest(op, *bounds[:2]), largest(op, *bounds[2:])]
    if limits is None:
        if dtypes[0] != dtypes[1]:
            op.unsupported("MXNet 1.9.1 drops the uint8 operand where no range is calibrated")
        total = op.emit("Add", *reach)
        steps = [step(op, bound, HALF_STEPS[dtypes[0]]) for bound in reach]
        numbers = _sum(op, (left, right), steps)
        wide = op.emit("Div", op.cast(numbers, np.float64), _wide_step(op, total))
        return op.cast(op.emit("Round", wide), np.int32), *symmetric(op, total)
    dtype = "uint8" if dtypes == ["uint8", "uint8"] else "int8"
    steps = [step(op, bound, WHOLE_STEPS[kind]) for bound, kind in zip(reach, dtypes, strict=True)]
    return in_range(op, _within(op, _sum(op, (left, right), steps), limits, dtype), limits)


@table.register("_contrib_quantized_elemwise_mul")
def quantized_multiply(op: Operation) -> Sequence[Value]:
    """Multiply int8 arrays, to real numbers, int32 products or 8-bit numbers.

    8-bit results are truncated, not rounded, as in MXNet 1.9.1.
    """
    left, right, *bounds = op.operands(6)
    if {op.dtype_of(left), op.dtype_of(right)} != {np.dtype(np.int8)}:
        op.unsupported("both operands must be int8")
    reach = [largest(op, *bounds[:2]), largest(op, *bounds[2:])]
    if op.bool("enable_float_output", False):
        steps = [step(op, bound, HALF_STEPS["int8"]) for bound in reach]
        pairs = zip((left, right), steps, strict=True)
        return [op.emit("Mul", *(dequantized(op, value, size) for value, size in pairs))]
    product = op.emit("Mul", op.cast(left, np.int32), op.cast(right, np.int32))
    unit = op.emit("Mul", *(step(op, bound, WHOLE_STEPS["int8"]) for bound in reach))
    limits = calibrated(op)
    if limits is None:
        total = op.emit("Mul", unit, op.constant_like(INT32_STEPS, unit))
        return product, *symmetric(op, op.emit("Reshape", total, vector(op, 1)))
    size = op.constant(np.float32(max(map(abs, limits)) / WHOLE_STEPS["int8"]))
    ratio = op.emit("Div", unit, size)
    scaled = op.emit("Mul", op.cast(product, np.float32), ratio)
    ends = (op.constant(number, np.float32) for number in (-128, 127))
    return in_range(op, op.cast(op.emit("Clip", scaled, *ends), np.int8), limits)


@table.register("_contrib_quantized_concat")
def quantized_concat(op: Operation) -> Sequence[Value]:
    """Concatenate 8-bit arrays in a common range: int8 if one of them is."""
    count = op.int("num_args")
    inputs = op.operands(3 * count)
    arrays, bounds = inputs[:count], inputs[count:]
    dtypes = [bits(op, value) for value in arrays]
    dtype = "int8" if "int8" in dtypes else "uint8"
    lows, highs = bounds[::2], bounds[1::2]
    low = lows[0] if count == 1 else op.emit("Min", *lows)
    high = highs[0] if count == 1 else op.emit("Max", *highs)
    size = step(op, largest(op, low, high), WHOLE_STEPS[dtype])
    parts = []
    for value, kind, first, last in zip(arrays, dtypes, lows, highs, strict=True):
        own = step(op, largest(op, first, last), WHOLE_STEPS[kind])
        parts.append(quantized(op, dequantized(op, value, own), size, dtype))
    result = op.emit("Concat", *parts, axis=op.axis(arrays[0], op.int("dim", 1)))
    return result, op.emit("Identity", low), op.emit("Identity", high)


@table.register("_contrib_quantized_batch_norm")
def quantized_batch_norm(op: Operation) -> Sequence[Value]:
    """Normalise 8-bit data with the moving statistics, to int8 in the calibrated range.

    The channels are axis 1. ``gamma`` counts whatever ``fix_gamma`` says, as in MXNet 1.9.1.
    """
    data, *parameters = op.operands(7)
    limits = calibrated(op)
    if limits is None:
        op.unsupported("MXNet 1.9.1 computes it with a calibrated range only", "min_calib_range")
    bound = largest(op, *parameters[4:])
    small = step(op, bound, HALF_STEPS["int8"])
    if bits(op, data) == "uint8":
        numbers = dequantized(op, data, step(op, bound, HALF_STEPS["uint8"]))
        data = quantized(op, numbers, small, "int8")
    numbers = dequantized(op, data, small)
    gamma, beta, mean, variance = parameters[:4]
    epsilon = op.float("eps", 1e-3)
    if epsilon <= -1:
        op.unsupported("leaves no variance", "eps")
    deviation = op.emit("Sqrt", op.emit("Add", variance, op.constant_like(epsilon, variance)))
    scale = op.emit("Div", gamma, deviation)
    shift = op.emit("Sub", beta, op.emit("Mul", mean, scale))
    # oneDNN sees a variance of 1, to which it adds epsilon once more.
    scale = op.emit("Mul", scale, op.constant_like(1 / math.sqrt(1 + epsilon), scale))
    column = vector(op, -1, *[1] * (op.rank_of(data) - 2))
    scale, shift = (op.emit("Reshape", value, column) for value in (scale, shift))
    result = op.emit("Add", op.emit("Mul", numbers, scale), shift)
    size = step(op, real(op, max(map(abs, limits))), HALF_STEPS["int8"])
    return in_range(op, quantized(op, result, size, "int8"), limits)


def _sum(op: Operation, values: Sequence[Value], steps: Sequence[Value]) -> Value:
    pairs = zip(values, steps, strict=True)
    return op.emit("Add", *(dequantized(op, value, size) for value, size in pairs))


def _within(op: Operation, value: Value, limits: tuple[float, float], dtype: str) -> Value:
    size = step(op, real(op, max(map(abs, limits))), WHOLE_STEPS[dtype])
    return quantized(op, value, size, dtype)


def _wide_step(op: Operation, bound: Value) -> Value:
    """Return the step of int32 numbers in double precision: float32 cannot count them."""
    return op.emit("Div", op.cast(bound, np.float64), op.constant(INT32_STEPS, np.float64))
