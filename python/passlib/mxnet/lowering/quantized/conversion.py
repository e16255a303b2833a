"""Conversions between real numbers, int32 sums and 8-bit numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
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


@table.register("_contrib_quantize")
def quantize(op: Operation) -> Sequence[Value]:
    """Quantize with a given range: data, minimum, maximum to 8-bit data and its range.

    The step is the largest absolute value of the range over 127 (int8) or 255 (uint8).
    """
    data, low, high = op.operands(3)
    dtype = op.string("out_type", "uint8", choices=("int8", "uint8"))
    bound = largest(op, low, high)
    made = quantized(op, data, step(op, bound, WHOLE_STEPS[dtype]), dtype)
    if dtype == "int8":
        return made, *symmetric(op, bound)
    return made, op.emit("Identity", low), op.emit("Identity", high)


@table.register("_contrib_quantize_v2")
def quantize_v2(op: Operation) -> Sequence[Value]:
    """Quantize with the calibrated range, or with the range of the data.

    The step is the largest absolute value of the range over 127.5 (int8) or 255.5 (uint8). With
    ``out_type`` auto the result is uint8 if the calibrated range has no negative number. 8-bit
    data keep their bits, and have one step for each whole number without a calibrated range.
    """
    (data,) = op.operands(1)
    limits = calibrated(op)
    dtype = _chosen(op, limits)
    own = op.dtype_of(data).name
    if own in HALF_STEPS:
        most = HALF_STEPS[own]
        low_end = -most if own == "int8" else 0.0
        return in_range(op, op.emit("Identity", op.cast(data, dtype)), limits or (low_end, most))
    if op.dtype_of(data) != np.float32:
        op.invalid(f"quantizes float32, int8 and uint8, not {op.dtype_of(data)}")
    if limits is not None:
        most = max(map(abs, limits))
        size = op.constant(np.float32(most) / np.float32(HALF_STEPS[dtype]))
        made = quantized(op, data, size, dtype)
        return in_range(op, made, (-most, most) if dtype == "int8" else limits)
    ends = [op.emit(f"Reduce{which}", data, keepdims=0) for which in ("Min", "Max")]
    low, high = (op.emit("Reshape", end, op.constant([1], np.int64)) for end in ends)
    bound = largest(op, low, high)
    made = quantized(op, data, step(op, bound, HALF_STEPS[dtype]), dtype)
    return made, *(symmetric(op, bound) if dtype == "int8" else (low, high))


@table.register("_contrib_dequantize")
def dequantize(op: Operation) -> Value:
    """Convert 8-bit data and its range to float32; 127.5 or 255.5 steps make the range."""
    data, low, high = op.operands(3)
    return dequantized(op, data, step(op, largest(op, low, high), HALF_STEPS[bits(op, data)]))


@table.register("_contrib_requantize")
def requantize(op: Operation) -> Sequence[Value]:
    """Convert int32 sums with their range to 8-bit data with the calibrated or actual range."""
    data, low, high = op.operands(3)
    limits = calibrated(op)
    dtype = _chosen(op, limits)
    unit = step(op, largest(op, low, high), INT32_STEPS)
    numbers = op.emit("Mul", op.cast(data, np.float32), unit)
    if limits is not None:
        bound = real(op, max(map(abs, limits)))
    else:
        size = op.emit("ReduceMax", op.emit("Abs", numbers), keepdims=0)
        bound = op.emit("Reshape", size, op.constant([1], np.int64))
    made = quantized(op, numbers, step(op, bound, WHOLE_STEPS[dtype]), dtype)
    if dtype == "int8":
        return made, *symmetric(op, bound)
    return made, op.emit("Identity", real(op, 0)), op.emit("Identity", bound)


def _chosen(op: Operation, limits: tuple[float, float] | None) -> str:
    dtype = op.string("out_type", "int8", choices=("auto", "int8", "uint8"))
    if dtype == "auto":
        return "uint8" if limits is not None and limits[0] >= 0 else "int8"
    return dtype
