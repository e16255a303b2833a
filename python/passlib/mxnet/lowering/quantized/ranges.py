"""Real ranges of quantized numbers: an 8-bit array, and two arrays (1,) with its range.

MXNet divides a range into 127 or 127.5 steps for int8, and 255 or 255.5 for uint8, depending on
the operator; the zero point is 0. The numbers here were measured with MXNet 1.9.1.
"""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value

WHOLE_STEPS = {"int8": 127.0, "uint8": 255.0}
HALF_STEPS = {"int8": 127.5, "uint8": 255.5}
INT32_STEPS = 2.0**31 - 1


def bits(op: Operation, value: Value) -> str:
    """Return the name of the element type of 8-bit numbers.

    Raises
    ------
    UnsupportedError
        It is another type.
    """
    name: str = op.dtype_of(value).name
    if name not in WHOLE_STEPS:
        op.unsupported(f"input {value.name!r} must be int8 or uint8, not {name}")
    return name


def real(op: Operation, number: float) -> Value:
    """Add a float32 constant of shape (1,), the form of ranges."""
    return op.constant([number], np.float32)


def largest(op: Operation, *bounds: Value) -> Value:
    """Return the largest absolute value of some bounds."""
    sizes = [op.emit("Abs", bound) for bound in bounds]
    return sizes[0] if len(sizes) == 1 else op.emit("Max", *sizes)


def symmetric(op: Operation, bound: Value) -> tuple[Value, Value]:
    """Return the range from -bound to bound."""
    return op.emit("Neg", bound), op.emit("Identity", bound)


def calibrated(op: Operation) -> tuple[float, float] | None:
    """Read the range that calibration found; None for a model without calibration."""
    low, high = op.optional_float("min_calib_range"), op.optional_float("max_calib_range")
    return None if low is None or high is None else (low, high)


def in_range(op: Operation, value: Value, limits: tuple[float, float]) -> tuple[Value, ...]:
    """Return a value with a calibrated range."""
    return value, *(op.emit("Identity", real(op, limit)) for limit in limits)


def step(op: Operation, bound: Value, steps: float) -> Value:
    """Return the real number that one step stands for, as a scalar."""
    size = op.emit("Div", bound, op.constant_like(steps, bound))
    return op.emit("Reshape", size, op.constant(np.zeros(0, np.int64)))


def quantized(op: Operation, value: Value, size: Value, dtype: str) -> Value:
    """Divide by the size of a step, round to even, saturate to the 8-bit type."""
    return op.emit("QuantizeLinear", value, size, op.constant(0, dtype))


def dequantized(op: Operation, value: Value, size: Value) -> Value:
    """Multiply an 8-bit value by the size of a step.

    int8 values become uint8 first: on processors without VNNI, ONNX Runtime 1.31 refuses models
    in which a change of shape follows the DequantizeLinear of an int8 value.
    """
    moved, zero = unsigned(op, value)
    return op.emit("DequantizeLinear", moved, size, op.constant(zero, np.uint8))


def unsigned(op: Operation, value: Value) -> tuple[Value, int]:
    """Return an 8-bit value as uint8, and its zero point.

    Products of uint8 and int8 saturate in ONNX Runtime's kernels for processors without VNNI;
    those of two uint8 operands are exact everywhere.
    """
    if bits(op, value) == "uint8":
        return value, 0
    moved = op.emit("Add", op.cast(value, np.int32), op.constant(128, np.int32))
    return op.cast(moved, np.uint8), 128
