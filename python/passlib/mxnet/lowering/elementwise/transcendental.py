"""Exponentials, logarithms, roots and trigonometry of each element.

Functions that ONNX has are one node each. The others are formulas, evaluated in float64 where
float32 would lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import is_real, through_real
from passlib.mxnet.lowering.table import table

_DIRECT = {name.lower(): name for name in ("Cos", "Exp", "Log", "Reciprocal", "Sin", "Sqrt")}

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
    return through_real(op, op.inputs[:1], lambda x: op.emit(onnx_operator, x), exact=True)


for _name, _onnx_operator in _DIRECT.items():
    table.register(_name)(partial(_one_node, _onnx_operator))


def _log_of_one_plus(op: Operation, x: Value) -> Value:
    """Compute log(1 + x) as x log(u) / (u - 1) with u = 1 + x: the error of u cancels."""
    u = x + 1
    rest, plain = u - 1, op.emit("Log", u)
    return op.where(x < 1, op.where(u.equals(1), x, x * plain / rest), plain)


def _exp_minus_one(op: Operation, x: Value) -> Value:
    """Compute exp(x) - 1, near 0 as x (u - 1) / log(u) with u = exp(x): the error of u cancels."""
    u = op.emit("Exp", x)
    rest = u - 1
    near = op.where(u.equals(1), x, x * rest / op.emit("Log", u))
    return op.where(op.emit("Abs", x) < 1, near, rest)


def _odd(op: Operation, x: Value, compute: Callable[[Operation, Value], Value]) -> Value:
    """Extend a function of |x| that is x near 0 to an odd one: x itself below 1e-8."""
    size = op.emit("Abs", x)
    right = compute(op, size)
    return op.where(size < 1e-8, x, op.where(x < 0, -right, right))


def _half_exp(op: Operation, size: Value) -> Value:
    """Compute exp(x) / 2, which is finite a little longer than exp(x)."""
    root = op.emit("Exp", size * 0.5)
    return root * 0.5 * root


def _sinh(op: Operation, size: Value) -> Value:
    """Compute (e + e / (e + 1)) / 2 with e = exp(|x|) - 1."""
    grown = _exp_minus_one(op, size)
    return op.where(size < 20, (grown + grown / (grown + 1)) * 0.5, _half_exp(op, size))


def logistic(op: Operation, x: Value) -> Value:
    """Compute 1 / (1 + exp(-x)); ONNX Runtime's Sigmoid of float64 is 0 below -36."""
    if x.dtype != np.float64:
        return op.emit("Sigmoid", x)
    return op.emit("Reciprocal", op.emit("Exp", -x) + 1)


def _cosh(op: Operation, x: Value) -> Value:
    size = op.emit("Abs", x)
    near = (op.emit("Exp", size) + op.emit("Exp", -size)) * 0.5
    return op.where(size < 20, near, _half_exp(op, size))


def _log_of_twice(op: Operation, x: Value) -> Value:
    return op.emit("Log", x) + math.log(2)


def _arcsinh(op: Operation, size: Value) -> Value:
    """Compute log(1 + a + a^2 / (1 + sqrt(a^2 + 1))) for a = |x|, and log(2 a) for a large a."""
    square = size * size
    near = _log_of_one_plus(op, size + square / (op.emit("Sqrt", square + 1) + 1))
    return op.where(size < 1e9, near, _log_of_twice(op, size))


def _arccosh(op: Operation, x: Value) -> Value:
    """Compute log(1 + t + sqrt(t) sqrt(t + 2)) for t = x - 1, and log(2 x) where x^2 is large."""
    rest = x - 1
    near = _log_of_one_plus(op, rest + op.emit("Sqrt", rest) * op.emit("Sqrt", rest + 2))
    return op.where(x < 1e9, near, _log_of_twice(op, x))


def _arctanh(op: Operation, size: Value) -> Value:
    """Compute log(1 + 2 a / (1 - a)) / 2 for a = |x|."""
    return _log_of_one_plus(op, size * 2 / (1 - size)) * 0.5


def _arctan(op: Operation, x: Value) -> Value:
    """Refine the single-precision y: sin(y - arctan a) is (sin y - a cos y) / sqrt(1 + a^2).

    Beyond 1, a is 1 / x, and the result is pi / 2 less that.
    """

    def right(op: Operation, size: Value) -> Value:
        is_far = size > 1
        a = op.where(is_far, op.emit("Reciprocal", size), size)
        coarse = op.cast(op.emit("Atan", op.cast(a, np.float32)), np.float64)
        gap = op.emit("Sin", coarse) - a * op.emit("Cos", coarse)
        fine = coarse - gap / op.emit("Sqrt", a * a + 1)
        return op.where(is_far, np.pi / 2 - fine, fine)

    return _odd(op, x, right)


def arctangent(op: Operation, x: Value) -> Value:
    """Compute the arctangent in the floating-point type of x."""
    return _arctan(op, x) if op.dtype_of(x) == np.float64 else op.emit("Atan", x)


_DOUBLE: dict[str, Callable[[Operation, Value], Value]] = {
    "arccos": lambda op, x: _arctan(op, op.emit("Sqrt", (1 - x) / (1 + x))) * 2,
    "arcsin": lambda op, x: _arctan(op, x / op.emit("Sqrt", (1 - x) * (1 + x))),
    "arctan": _arctan,
    "arccosh": _arccosh,
    "arcsinh": lambda op, x: _odd(op, x, _arcsinh),
    "arctanh": lambda op, x: _odd(op, x, _arctanh),
    "cosh": _cosh,
    "sinh": lambda op, x: _odd(op, x, _sinh),
    "tan": lambda op, x: op.emit("Sin", x) / op.emit("Cos", x),
}


def _one_node_or_formula(name: str, op: Operation) -> Value:
    dtype = op.dtype_of(op.inputs[0])
    if dtype == np.float64 or not is_real(dtype):
        return through_real(op, op.inputs[:1], partial(_DOUBLE[name], op), exact=True)
    return _one_node(_DIRECT_SINGLE[name], op)


for _name in _DIRECT_SINGLE:
    table.register(_name)(partial(_one_node_or_formula, _name))


def _logarithm_to(base: float, op: Operation) -> Value:
    # The logarithm of a power must not be below the exponent, which would be truncated.
    whole = not is_real(op.dtype_of(op.inputs[0]))
    factor = float((1 + np.finfo(np.float64).eps * whole) / np.log(base))
    return through_real(op, op.inputs[:1], lambda x: op.emit("Log", x) * factor, exact=True)


def _in_double(compute: Callable[[Operation, Value], Value], op: Operation) -> Value:
    return through_real(op, op.inputs[:1], partial(compute, op), double=True, exact=True)


def _scaled(factor: float, divisor: float, op: Operation) -> Value:
    # In MXNet's order, which decides what is left of integers.
    return through_real(op, op.inputs[:1], lambda x: x * factor / divisor)


@table.register("tanh")
def _tanh(op: Operation) -> Value:
    """Apply Tanh; of integers compute 1 - 2 / (exp(2 x) + 1), as Tanh is 1 from 17 on."""
    if is_real(op.dtype_of(op.inputs[0])):
        return op.emit("Tanh", op.inputs[0])

    def right(op: Operation, size: Value) -> Value:
        return 1 - 2 / (op.emit("Exp", size + size) + 1)

    return through_real(op, op.inputs[:1], lambda x: _odd(op, x, right), exact=True)


def _cbrt(op: Operation, x: Value, more: float = 4.0) -> Value:
    size = op.emit("Abs", x)
    limits = np.finfo(np.float64)
    ends = (op.constant_like(end, x) for end in (limits.smallest_subnormal, limits.max))
    # Unlike Sign, this keeps the sign of zero: 1 / cbrt(-0) is -inf.
    direction = x / op.emit("Clip", size, *ends)
    root = size ** (1 / 3)
    if not is_real(op.dtype_of(op.inputs[0])):
        # The root of a cube must not be below the integer, which would be truncated; where its
        # reciprocal is truncated, it must not be above.
        # ONNX Runtime leaves out a product with a number so near to 1.
        root = root + root * (more * np.finfo(np.float64).eps)
    return direction * root


@table.register("sigmoid")
def _sigmoid(op: Operation) -> Value:
    return through_real(op, op.inputs[:1], lambda x: logistic(op, x), exact=True)


table.register("log2")(partial(_logarithm_to, 2.0))
table.register("log10")(partial(_logarithm_to, 10.0))
table.register("degrees")(partial(_scaled, 180.0, np.pi))
table.register("radians")(partial(_scaled, np.pi, 180.0))
_FORMULAS: dict[str, Callable[[Operation, Value], Value]] = {
    "log1p": _log_of_one_plus,
    "expm1": _exp_minus_one,
    "rsqrt": lambda op, x: op.emit("Reciprocal", op.emit("Sqrt", x)),
    "cbrt": _cbrt,
    "rcbrt": lambda op, x: op.emit("Reciprocal", _cbrt(op, x, -4.0)),
}
for _name, _formula in _FORMULAS.items():
    table.register(_name)(partial(_in_double, _formula))
