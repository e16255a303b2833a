"""Rounding to integers; integers stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import as_number, is_real
from passlib.mxnet.lowering.table import table

__all__: list[str] = []


def _toward_zero(op: Operation, x: Value) -> Value:
    negative = op.emit("Less", x, op.constant_like(0, x))
    return op.emit("Where", negative, op.emit("Ceil", x), op.emit("Floor", x))


def _half_down(op: Operation, x: Value) -> Value:
    """Round to the nearest integer, halves toward minus infinity (2.5 to 2, -1.5 to -2)."""
    below = op.emit("Floor", x)
    near = op.emit("LessOrEqual", op.emit("Sub", x, below), op.constant_like(0.5, x))
    return op.emit("Where", near, below, op.emit("Ceil", x))


def _half_away(op: Operation, x: Value) -> Value:
    """Round to the nearest integer, halves away from zero (2.5 to 3, -1.5 to -2)."""
    size = op.emit("Abs", x)
    below = op.emit("Floor", size)
    far = op.emit("GreaterOrEqual", op.emit("Sub", size, below), op.constant_like(0.5, x))
    rounded = op.emit("Add", below, as_number(op, far, x))
    return op.emit("Mul", op.emit("Sign", x), rounded)


_ROUNDING: dict[str, Callable[[Operation, Value], Value]] = {
    "ceil": lambda op, x: op.emit("Ceil", x),
    "floor": lambda op, x: op.emit("Floor", x),
    "trunc": _toward_zero,
    "fix": _toward_zero,
    "rint": _half_down,
    "round": _half_away,
    "_contrib_round_ste": _half_away,
}


def _rounded(name: str, op: Operation) -> Value:
    x = op.inputs[0]
    return _ROUNDING[name](op, x) if is_real(op.dtype_of(x)) else x


for _name in _ROUNDING:
    table.register(_name)(partial(_rounded, _name))
