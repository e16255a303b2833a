"""Exponentials, logarithms, roots and trigonometry of each element.

Functions that ONNX has are one node each. The others are formulas, evaluated in float64 where
float32 would lose digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.dialects.mxnet.lowering.real_arithmetic import through_real
from passlib.dialects.mxnet.lowering.table import table
from passlib.lowering import Operation, Value

__all__: list[str] = []

_DIRECT = {
    "cos": "Cos",
    "exp": "Exp",
    "log": "Log",
    "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}

_DIRECT_SINGLE = {
    "arccos": "Acos",
    "arcsin": "Asin",
    "arctan": "Atan",
    "arccosh": "Acosh",
    "arcsinh": "Asinh",
    "arctanh": "Atanh",
    "cosh": "Cosh",
    "sinh": "Sinh",
    "tan": "Tan",
}
"""ONNX Runtime computes these in single precision only; float64 uses the formulas below."""


def _one_node(onnx_operator: str, op: Operation) -> Value:
    return through_real(op, op.inputs[:1], lambda x: op.emit(onnx_operator, x))


for _name, _onnx_operator in _DIRECT.items():
    table.register(_name)(partial(_one_node, _onnx_operator))


def _number(op: Operation, x: Value, number: float) -> Value:
    return op.constant_like(number, x)


def _half(op: Operation, x: Value) -> Value:
    return op.emit("Mul", x, _number(op, x, 0.5))


def _log_of_one_plus(op: Operation, x: Value) -> Value:
    """Compute log(1 + x); near 0, where 1 + x loses the digits of x, by its series."""
    series = op.emit("Mul", x, op.emit("Sub", _number(op, x, 1), _half(op, x)))
    plain = op.emit("Log", op.emit("Add", x, _number(op, x, 1)))
    return op.emit("Where", _is_tiny(op, x), series, plain)


def _exp_minus_one(op: Operation, x: Value) -> Value:
    """Compute exp(x) - 1; near 0 by its series."""
    series = op.emit("Mul", x, op.emit("Add", _number(op, x, 1), _half(op, x)))
    plain = op.emit("Sub", op.emit("Exp", x), _number(op, x, 1))
    return op.emit("Where", _is_tiny(op, x), series, plain)


def _is_tiny(op: Operation, x: Value) -> Value:
    return op.emit("Less", op.emit("Abs", x), _number(op, x, 1e-6))


def _sinh(op: Operation, x: Value) -> Value:
    difference = op.emit("Sub", op.emit("Exp", x), op.emit("Exp", op.emit("Neg", x)))
    return _half(op, difference)


def _cosh(op: Operation, x: Value) -> Value:
    return _half(op, op.emit("Add", op.emit("Exp", x), op.emit("Exp", op.emit("Neg", x))))


def _tan(op: Operation, x: Value) -> Value:
    return op.emit("Div", op.emit("Sin", x), op.emit("Cos", x))


def _arcsinh(op: Operation, x: Value) -> Value:
    """Compute sign(x) log(|x| + sqrt(x^2 + 1)), odd by construction."""
    size = op.emit("Abs", x)
    root = op.emit("Sqrt", op.emit("Add", op.emit("Mul", x, x), _number(op, x, 1)))
    return op.emit("Mul", op.emit("Sign", x), op.emit("Log", op.emit("Add", size, root)))


def _arccosh(op: Operation, x: Value) -> Value:
    root = op.emit("Sqrt", op.emit("Sub", op.emit("Mul", x, x), _number(op, x, 1)))
    return op.emit("Log", op.emit("Add", x, root))


def _arctanh(op: Operation, x: Value) -> Value:
    one = _number(op, x, 1)
    return _half(op, op.emit("Log", op.emit("Div", op.emit("Add", one, x), op.emit("Sub", one, x))))


def _arctan(op: Operation, x: Value) -> Value:
    """Refine the single-precision y: sin(y - arctan x) is (sin y - x cos y) / sqrt(1 + x^2)."""
    coarse = op.cast(op.emit("Atan", op.cast(x, np.float32)), np.float64)
    gap = op.emit("Sub", op.emit("Sin", coarse), op.emit("Mul", x, op.emit("Cos", coarse)))
    scale = op.emit("Sqrt", op.emit("Add", op.emit("Mul", x, x), _number(op, x, 1)))
    fine = op.emit("Sub", coarse, op.emit("Div", gap, scale))
    end = op.emit("Mul", op.emit("Sign", x), _number(op, x, np.pi / 2))
    return op.emit("Where", op.emit("IsInf", x), end, fine)


def _arcsin(op: Operation, x: Value) -> Value:
    one = _number(op, x, 1)
    across = op.emit("Mul", op.emit("Sub", one, x), op.emit("Add", one, x))
    return _arctan(op, op.emit("Div", x, op.emit("Sqrt", across)))


def _arccos(op: Operation, x: Value) -> Value:
    """Compute 2 arctan sqrt((1 - x) / (1 + x))."""
    one = _number(op, x, 1)
    ratio = op.emit("Div", op.emit("Sub", one, x), op.emit("Add", one, x))
    return op.emit("Mul", _arctan(op, op.emit("Sqrt", ratio)), _number(op, x, 2))


_DOUBLE: dict[str, Callable[[Operation, Value], Value]] = {
    "arccos": _arccos,
    "arcsin": _arcsin,
    "arctan": _arctan,
    "arccosh": _arccosh,
    "arcsinh": _arcsinh,
    "arctanh": _arctanh,
    "cosh": _cosh,
    "sinh": _sinh,
    "tan": _tan,
}


def _one_node_or_formula(name: str, op: Operation) -> Value:
    if op.dtype_of(op.inputs[0]) == np.float64:
        return _DOUBLE[name](op, op.inputs[0])
    return _one_node(_DIRECT_SINGLE[name], op)


for _name in _DIRECT_SINGLE:
    table.register(_name)(partial(_one_node_or_formula, _name))


def _logarithm_to(base: float, op: Operation) -> Value:
    def compute(x: Value) -> Value:
        return op.emit("Mul", op.emit("Log", x), _number(op, x, 1 / np.log(base)))

    return through_real(op, op.inputs[:1], compute)


def _in_double(compute: Callable[[Operation, Value], Value], op: Operation) -> Value:
    return through_real(op, op.inputs[:1], partial(compute, op), double=True)


def _scaled(factor: float, op: Operation) -> Value:
    def compute(x: Value) -> Value:
        return op.emit("Mul", x, _number(op, x, factor))

    return through_real(op, op.inputs[:1], compute)


def _rsqrt(op: Operation, x: Value) -> Value:
    return op.emit("Reciprocal", op.emit("Sqrt", x))


def _cbrt(op: Operation, x: Value) -> Value:
    size = op.emit("Abs", x)
    limits = np.finfo(np.float64)
    finite = op.emit(
        "Clip", size, _number(op, x, limits.smallest_subnormal), _number(op, x, limits.max)
    )
    # Unlike Sign, this keeps the sign of zero: 1 / cbrt(-0) is -inf.
    direction = op.emit("Div", x, finite)
    return op.emit("Mul", direction, op.emit("Pow", size, _number(op, x, 1 / 3)))


def _rcbrt(op: Operation, x: Value) -> Value:
    return op.emit("Reciprocal", _cbrt(op, x))


table.register("log2")(partial(_logarithm_to, 2.0))
table.register("log10")(partial(_logarithm_to, 10.0))
table.register("degrees")(partial(_scaled, 180 / np.pi))
table.register("radians")(partial(_scaled, np.pi / 180))
for _name, _formula in {
    "log1p": _log_of_one_plus,
    "expm1": _exp_minus_one,
    "rsqrt": _rsqrt,
    "cbrt": _cbrt,
    "rcbrt": _rcbrt,
}.items():
    table.register(_name)(partial(_in_double, _formula))
