"""Exponentials, logarithms, roots and trigonometry of each element.

Functions that ONNX has are one node each. The others are formulas, evaluated in float64 where
float32 would lose digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import is_real, through_real
from passlib.mxnet.lowering.table import table

_DIRECT = {
    "cos": "Cos",
    "exp": "Exp",
    "log": "Log",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "sqrt": "Sqrt",
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
    return through_real(op, op.inputs[:1], lambda x: op.emit(onnx_operator, x), exact=True)


for _name, _onnx_operator in _DIRECT.items():
    table.register(_name)(partial(_one_node, _onnx_operator))


def _number(op: Operation, x: Value, number: float) -> Value:
    return op.constant_like(number, x)


def _half(op: Operation, x: Value) -> Value:
    return op.emit("Mul", x, _number(op, x, 0.5))


def _below(op: Operation, x: Value, number: float) -> Value:
    return op.emit("Less", x, _number(op, x, number))


def _log_of_one_plus(op: Operation, x: Value) -> Value:
    """Compute log(1 + x) as x log(u) / (u - 1) with u = 1 + x: the error of u cancels."""
    one = _number(op, x, 1)
    u = op.emit("Add", x, one)
    rest, plain = op.emit("Sub", u, one), op.emit("Log", u)
    quotient = op.emit("Div", op.emit("Mul", x, plain), rest)
    near = op.emit("Where", op.emit("Equal", u, one), x, quotient)
    return op.emit("Where", _below(op, x, 1), near, plain)


def _exp_minus_one(op: Operation, x: Value) -> Value:
    """Compute exp(x) - 1, near 0 as x (u - 1) / log(u) with u = exp(x): the error of u cancels."""
    one = _number(op, x, 1)
    u = op.emit("Exp", x)
    rest = op.emit("Sub", u, one)
    quotient = op.emit("Div", op.emit("Mul", x, rest), op.emit("Log", u))
    near = op.emit("Where", op.emit("Equal", u, one), x, quotient)
    return op.emit("Where", _below(op, op.emit("Abs", x), 1), near, rest)


def _odd(op: Operation, x: Value, compute: Callable[[Operation, Value], Value]) -> Value:
    """Extend a function of |x| that is x near 0 to an odd one: x itself below 1e-8."""
    size = op.emit("Abs", x)
    right = compute(op, size)
    signed = op.emit("Where", _below(op, x, 0), op.emit("Neg", right), right)
    return op.emit("Where", _below(op, size, 1e-8), x, signed)


def _half_exp(op: Operation, size: Value) -> Value:
    """Compute exp(x) / 2, which is finite a little longer than exp(x)."""
    root = op.emit("Exp", _half(op, size))
    return op.emit("Mul", _half(op, root), root)


def _sinh(op: Operation, x: Value) -> Value:
    """Compute (e + e / (e + 1)) / 2 with e = exp(|x|) - 1."""

    def right(op: Operation, size: Value) -> Value:
        grown = _exp_minus_one(op, size)
        shrunk = op.emit("Div", grown, op.emit("Add", grown, _number(op, size, 1)))
        near = _half(op, op.emit("Add", grown, shrunk))
        return op.emit("Where", _below(op, size, 20), near, _half_exp(op, size))

    return _odd(op, x, right)


def logistic(op: Operation, x: Value) -> Value:
    """Compute 1 / (1 + exp(-x)); ONNX Runtime's Sigmoid of float64 is 0 below -36."""
    if x.dtype != np.float64:
        return op.emit("Sigmoid", x)
    grown = op.emit("Exp", op.emit("Neg", x))
    return op.emit("Reciprocal", op.emit("Add", grown, _number(op, x, 1)))


def _cosh(op: Operation, x: Value) -> Value:
    size = op.emit("Abs", x)
    near = _half(op, op.emit("Add", op.emit("Exp", size), op.emit("Exp", op.emit("Neg", size))))
    return op.emit("Where", _below(op, size, 20), near, _half_exp(op, size))


def _tan(op: Operation, x: Value) -> Value:
    return op.emit("Div", op.emit("Sin", x), op.emit("Cos", x))


def _log_of_twice(op: Operation, x: Value) -> Value:
    return op.emit("Add", op.emit("Log", x), _number(op, x, np.log(2)))


def _arcsinh(op: Operation, x: Value) -> Value:
    """Compute log(1 + a + a^2 / (1 + sqrt(a^2 + 1))) for a = |x|, and log(2 a) for a large a."""

    def right(op: Operation, size: Value) -> Value:
        one, square = _number(op, size, 1), op.emit("Mul", size, size)
        root = op.emit("Sqrt", op.emit("Add", square, one))
        part = op.emit("Div", square, op.emit("Add", root, one))
        near = _log_of_one_plus(op, op.emit("Add", size, part))
        return op.emit("Where", _below(op, size, 1e9), near, _log_of_twice(op, size))

    return _odd(op, x, right)


def _arccosh(op: Operation, x: Value) -> Value:
    """Compute log(1 + t + sqrt(t) sqrt(t + 2)) for t = x - 1, and log(2 x) where x^2 is large."""
    rest = op.emit("Sub", x, _number(op, x, 1))
    other = op.emit("Add", rest, _number(op, x, 2))
    root = op.emit("Mul", op.emit("Sqrt", rest), op.emit("Sqrt", other))
    near = _log_of_one_plus(op, op.emit("Add", rest, root))
    return op.emit("Where", _below(op, x, 1e9), near, _log_of_twice(op, x))


def _arctanh(op: Operation, x: Value) -> Value:
    """Compute log(1 + 2 a / (1 - a)) / 2 for a = |x|."""

    def right(op: Operation, size: Value) -> Value:
        twice = op.emit("Mul", size, _number(op, size, 2))
        ratio = op.emit("Div", twice, op.emit("Sub", _number(op, size, 1), size))
        return _half(op, _log_of_one_plus(op, ratio))

    return _odd(op, x, right)


def _arctan(op: Operation, x: Value) -> Value:
    """Refine the single-precision y: sin(y - arctan a) is (sin y - a cos y) / sqrt(1 + a^2).

    Beyond 1, a is 1 / x, and the result is pi / 2 less that.
    """

    def right(op: Operation, size: Value) -> Value:
        one = _number(op, size, 1)
        is_far = op.emit("Greater", size, one)
        a = op.emit("Where", is_far, op.emit("Reciprocal", size), size)
        coarse = op.cast(op.emit("Atan", op.cast(a, np.float32)), np.float64)
        gap = op.emit("Sub", op.emit("Sin", coarse), op.emit("Mul", a, op.emit("Cos", coarse)))
        scale = op.emit("Sqrt", op.emit("Add", op.emit("Mul", a, a), one))
        fine = op.emit("Sub", coarse, op.emit("Div", gap, scale))
        far = op.emit("Sub", _number(op, size, np.pi / 2), fine)
        return op.emit("Where", is_far, far, fine)

    return _odd(op, x, right)


def arctangent(op: Operation, x: Value) -> Value:
    """Compute the arctangent in the floating-point type of x."""
    return _arctan(op, x) if op.dtype_of(x) == np.float64 else op.emit("Atan", x)


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
    dtype = op.dtype_of(op.inputs[0])
    if dtype == np.float64 or not is_real(dtype):
        return through_real(op, op.inputs[:1], partial(_DOUBLE[name], op), exact=True)
    return _one_node(_DIRECT_SINGLE[name], op)


for _name in _DIRECT_SINGLE:
    table.register(_name)(partial(_one_node_or_formula, _name))


def _logarithm_to(base: float, op: Operation) -> Value:
    # The logarithm of a power must not be below the exponent, which would be truncated.
    whole = not is_real(op.dtype_of(op.inputs[0]))
    factor = (1 + np.finfo(np.float64).eps * whole) / np.log(base)

    def compute(x: Value) -> Value:
        return op.emit("Mul", op.emit("Log", x), _number(op, x, factor))

    return through_real(op, op.inputs[:1], compute, exact=True)


def _in_double(compute: Callable[[Operation, Value], Value], op: Operation) -> Value:
    return through_real(op, op.inputs[:1], partial(compute, op), double=True, exact=True)


def _scaled(factor: float, divisor: float, op: Operation) -> Value:
    # In MXNet's order, which decides what is left of integers.
    def compute(x: Value) -> Value:
        return op.emit("Div", op.emit("Mul", x, _number(op, x, factor)), _number(op, x, divisor))

    return through_real(op, op.inputs[:1], compute)


@table.register("tanh")
def _tanh(op: Operation) -> Value:
    """Apply Tanh; of integers compute 1 - 2 / (exp(2 x) + 1), as Tanh is 1 from 17 on."""
    if is_real(op.dtype_of(op.inputs[0])):
        return op.emit("Tanh", op.inputs[0])

    def right(op: Operation, size: Value) -> Value:
        one = _number(op, size, 1)
        grown = op.emit("Exp", op.emit("Add", size, size))
        rest = op.emit("Div", _number(op, size, 2), op.emit("Add", grown, one))
        return op.emit("Sub", one, rest)

    return through_real(op, op.inputs[:1], lambda x: _odd(op, x, right), exact=True)


def _rsqrt(op: Operation, x: Value) -> Value:
    return op.emit("Reciprocal", op.emit("Sqrt", x))


def _cbrt(op: Operation, x: Value, more: float = 4.0) -> Value:
    size = op.emit("Abs", x)
    limits = np.finfo(np.float64)
    finite = op.emit(
        "Clip", size, _number(op, x, limits.smallest_subnormal), _number(op, x, limits.max)
    )
    # Unlike Sign, this keeps the sign of zero: 1 / cbrt(-0) is -inf.
    direction = op.emit("Div", x, finite)
    root = op.emit("Pow", size, _number(op, x, 1 / 3))
    if not is_real(op.dtype_of(op.inputs[0])):
        # The root of a cube must not be below the integer, which would be truncated; where its
        # reciprocal is truncated, it must not be above.
        # ONNX Runtime leaves out a product with a number so near to 1.
        moved = op.emit("Mul", root, _number(op, x, more * np.finfo(np.float64).eps))
        root = op.emit("Add", root, moved)
    return op.emit("Mul", direction, root)


def _rcbrt(op: Operation, x: Value) -> Value:
    return op.emit("Reciprocal", _cbrt(op, x, -4.0))


@table.register("sigmoid")
def _sigmoid(op: Operation) -> Value:
    return through_real(op, op.inputs[:1], lambda x: logistic(op, x), exact=True)


table.register("log2")(partial(_logarithm_to, 2.0))
table.register("log10")(partial(_logarithm_to, 10.0))
table.register("degrees")(partial(_scaled, 180.0, np.pi))
table.register("radians")(partial(_scaled, np.pi, 180.0))
for _name, _formula in {
    "log1p": _log_of_one_plus,
    "expm1": _exp_minus_one,
    "rsqrt": _rsqrt,
    "cbrt": _cbrt,
    "rcbrt": _rcbrt,
}.items():
    table.register(_name)(partial(_in_double, _formula))
