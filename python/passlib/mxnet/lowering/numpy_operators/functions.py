"""Functions of two operands of one element type that only NumPy mode has."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.elementwise.transcendental import arctangent
from passlib.mxnet.lowering.real_arithmetic import is_real, through_real


def _is_negative(op: Operation, x: Value) -> Value:
    """Whether each element has a minus sign, -0 included."""
    below = op.emit("Less", x, op.constant_like(0, x))
    return op.emit("Or", below, op.emit("IsInf", op.emit("Reciprocal", x), detect_positive=0))


def _angle(op: Operation, y: Value, x: Value) -> Value:
    """Compute the angle of the point (x, y): arctan |y / x|, mirrored by the signs."""

    def compute(y: Value, x: Value) -> Value:
        zero = op.constant_like(0, y)
        height, width = op.emit("Abs", y), op.emit("Abs", x)
        slope = op.emit("Div", height, width)
        same = op.emit("Equal", height, width)
        slope = op.emit("Where", same, op.constant_like(1, y), slope)
        slope = op.emit("Where", op.emit("Equal", height, zero), zero, slope)
        angle = arctangent(op, slope)
        behind = op.emit("Sub", op.constant_like(np.pi, y), angle)
        angle = op.emit("Where", _is_negative(op, x), behind, angle)
        return op.emit("Where", _is_negative(op, y), op.emit("Neg", angle), angle)

    return through_real(op, (y, x), compute)


def _copy_sign(op: Operation, a: Value, b: Value) -> Value:
    """Negate a where the signs differ; -0 counts as positive in MXNet."""
    if op.dtype_of(a).kind == "u":
        return op.emit("Add", a, op.emit("Sub", b, b))
    zeros = op.constant_like(0, a), op.constant_like(0, b)
    above = [op.emit("GreaterOrEqual", *pair) for pair in zip((a, b), zeros, strict=True)]
    below = [op.emit("Less", *pair) for pair in zip((a, b), zeros, strict=True)]
    keeps = op.emit("Or", op.emit("And", *above), op.emit("And", *below))
    return op.emit("Where", keeps, a, op.emit("Neg", a))


def _scaled_by_power(op: Operation, a: Value, b: Value) -> Value:
    def compute(x: Value, exponent: Value) -> Value:
        return op.emit("Mul", x, op.emit("Pow", op.constant_like(2, exponent), exponent))

    return through_real(op, (a, b), compute)


_EUCLIDEAN_STEPS = {1: 13, 4: 46, 8: 91}
"""By the width of the type: the most divisions that two integers need, Fibonacci numbers."""


def _common_multiple(op: Operation, a: Value, b: Value) -> Value:
    """Compute |a b| / gcd by unrolled Euclidean division; 0 where either is 0."""
    if is_real(op.dtype_of(a)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(a)}")
    if op.dtype_of(a).kind == "i":
        a, b = op.emit("Abs", a), op.emit("Abs", b)
    zero, one = op.constant_like(0, a), op.constant_like(1, a)
    larger, smaller = a, b
    for _ in range(_EUCLIDEAN_STEPS[op.dtype_of(a).itemsize]):
        done = op.emit("Equal", smaller, zero)
        rest = op.emit("Mod", larger, op.emit("Where", done, one, smaller))
        larger = op.emit("Where", done, larger, smaller)
        smaller = op.emit("Where", done, zero, rest)
    divisor = op.emit("Where", op.emit("Equal", larger, zero), one, larger)
    return op.emit("Mul", op.emit("Div", a, divisor), b)


def _bitwise(function: str, op: Operation, a: Value, b: Value) -> Value:
    if is_real(op.dtype_of(a)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(a)}")
    return op.emit(f"Bitwise{function}", a, b)


FUNCTIONS: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "arctan2": _angle,
    "bitwise_and": partial(_bitwise, "And"),
    "bitwise_or": partial(_bitwise, "Or"),
    "bitwise_xor": partial(_bitwise, "Xor"),
    "copysign": _copy_sign,
    "lcm": _common_multiple,
    "ldexp": _scaled_by_power,
}
"""By name; unsigned bytes stand for truth values."""
