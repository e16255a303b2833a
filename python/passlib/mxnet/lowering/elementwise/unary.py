"""Functions of a single element; shape and element type stay.

Functions that ONNX has are one node each. The others are formulas, evaluated in float64 where
float32 would lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import (
    NARROW,
    as_number,
    element_type,
    is_real,
    larger,
    multicast,
    smaller,
    through_real,
)
from passlib.mxnet.lowering.table import table


def _toward_zero(op: Operation, x: Value) -> Value:
    return op.where(x < 0, op.emit("Ceil", x), op.emit("Floor", x))


def _half_down(op: Operation, x: Value) -> Value:
    """Round to the nearest integer, halves toward minus infinity (2.5 to 2, -1.5 to -2)."""
    below = op.emit("Floor", x)
    return op.where(x - below <= 0.5, below, op.emit("Ceil", x))


def _half_away(op: Operation, x: Value) -> Value:
    """Round to the nearest integer, halves away from zero (2.5 to 3, -1.5 to -2)."""
    size = op.emit("Abs", x)
    below = op.emit("Floor", size)
    return op.emit("Sign", x) * (below + as_number(op, size - below >= 0.5, x))


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


@table.register(
    "_copy", "identity", "BlockGrad", "stop_gradient", "make_loss", "MakeLoss",
    "_identity_with_attr_like_rhs", "_contrib_gradientmultiplier", "_copyto", "_CrossDeviceCopy",
    "LinearRegressionOutput", "_sparse_LinearRegressionOutput", "MAERegressionOutput",
    "_sparse_MAERegressionOutput", "SVMOutput",
)  # fmt: skip
def identity(op: Operation) -> Value:
    """Return the first input; other inputs and attributes affect only gradients and devices."""
    return op.emit("Identity", op.inputs[0])


@table.register("IdentityAttachKLSparseReg")
def sparsely_regularized(op: Operation) -> Value:
    """Return the first input, (N, C, ...); the regularization affects only the gradient."""
    op.require_rank(op.inputs[0], least=2)
    return op.emit("Identity", op.inputs[0])


@table.register("cast_storage")
def cast_storage(op: Operation) -> Value:
    """Return the input as a dense array, the only storage that ONNX computes with.

    The numbers of the sparse kinds that ``stype`` names are the same.
    """
    if op.string("stype", choices=("default", "row_sparse", "csr")) == "csr":
        op.require_rank(op.inputs[0], 2)
    return op.emit("Identity", op.inputs[0])


@table.register("Cast", "cast", "_npi_cast", "_npx_cast")
def cast(op: Operation) -> Value:
    """Convert to ``dtype`` as C does: fractions are truncated, integers wrap."""
    return op.cast(op.inputs[0], element_type(op))


@table.register("amp_cast")
def amp_cast(op: Operation) -> Value:
    """Convert float16, bfloat16 and float32 to ``dtype``; other types stay as they are."""
    data, target = op.inputs[0], element_type(op)
    return op.cast(data, target) if op.dtype_of(data).name in NARROW else op.emit("Identity", data)


@table.register("amp_multicast")
def amp_multicast(op: Operation) -> Sequence[Value]:
    """Convert the inputs to the types of `multicast`."""
    given = list(map(op.dtype_of, op.inputs))
    types = multicast(given, narrow=op.bool("cast_narrow", False))
    return [
        op.emit("Identity", value) if dtype is None or dtype == old else op.cast(value, dtype)
        for value, old, dtype in zip(op.inputs, given, types, strict=True)
    ]


@table.register("abs")
def absolute(op: Operation) -> Value:
    """Compute |x|."""
    return op.emit("Abs", op.inputs[0])


@table.register("negative")
def negative(op: Operation) -> Value:
    """Negate; unsigned integers wrap."""
    x = op.inputs[0]
    if op.dtype_of(x).kind == "u":
        return 0 - x
    return -x


@table.register("square")
def square(op: Operation) -> Value:
    """Compute x * x, that of integers in float32."""
    return through_real(op, op.inputs[:1], lambda x: x * x)


@table.register("sign", "_contrib_sign_ste")
def sign(op: Operation) -> Value:
    """Return -1, 0 or 1; the sign of NaN is 0 in MXNet."""
    x = op.inputs[0]
    # ONNX Runtime before 1.32 has wrong signs of int64, as it has a wrong Clip.
    if not is_real(op.dtype_of(x)) and op.dtype_of(x) != np.int64:
        return op.emit("Sign", x)
    zero = op.constant_like(0, x)
    above, below = x > zero, x < zero
    return as_number(op, above, x) - as_number(op, below, x)


@table.register("relu", "_npx_relu")
def relu(op: Operation) -> Value:
    """Compute max(x, 0)."""
    x = op.inputs[0]
    if is_real(op.dtype_of(x)):
        return op.emit("Relu", x)
    return larger(op, x, op.constant_like(0, x))


@table.register("softsign")
def softsign(op: Operation) -> Value:
    """Compute x / (1 + |x|)."""

    def compute(x: Value) -> Value:
        return x / (op.emit("Abs", x) + 1)

    return through_real(op, op.inputs[:1], compute, exact=True)


@table.register("hard_sigmoid")
def hard_sigmoid(op: Operation) -> Value:
    """Compute min(1, max(0, alpha x + beta)), for floating point only."""
    x = op.inputs[0]
    if not is_real(op.dtype_of(x)):
        op.unsupported(f"is defined for floating-point numbers, not for {op.dtype_of(x)}")
    alpha, beta = op.float("alpha", 0.2), op.float("beta", 0.5)
    return _between(op, x * alpha + beta, op.constant_like(0, x), op.constant_like(1, x))


def _between(op: Operation, x: Value, low: Value, high: Value) -> Value:
    if op.dtype_of(x).name not in ("bfloat16", "int64"):
        return op.emit("Clip", x, low, high)
    # ONNX Runtime has no Clip for bfloat16, nor the operators that it would replace Clip by.
    return smaller(op, larger(op, x, low), high)


@table.register("logical_not")
def logical_not(op: Operation) -> Value:
    """Return 1 where x is 0, else 0, in the element type of x."""
    x = op.inputs[0]
    return as_number(op, x.equals(0), x)


@table.register("clip")
def clip(op: Operation) -> Value:
    """Limit to ``a_min`` .. ``a_max``, whose fractions are truncated for integers."""
    x = op.inputs[0]
    dtype = op.dtype_of(x)
    limits = [op.float("a_min"), op.float("a_max")]
    if not is_real(dtype):
        if dtype == np.bool_ or any(math.isnan(limit) for limit in limits):
            op.unsupported(f"cannot limit {dtype} to {limits}")
        # A limit outside the range of the type has no effect.
        ends = np.iinfo(dtype)
        limits = [math.trunc(min(max(limit, ends.min), ends.max)) for limit in limits]
    low, high = (op.constant(np.asarray(limit).astype(dtype)) for limit in limits)
    if limits[0] <= limits[1]:
        return _between(op, x, low, high)
    # ONNX leaves crossed limits undefined; MXNet checks the upper one first.
    return op.where(x > high, high, op.where(x < low, low, x))


@table.register("smooth_l1")
def smooth_l1(op: Operation) -> Value:
    """Compute (s x)^2 / 2 where |x| < 1 / s^2, else |x| - 0.5 / s^2; s is ``scalar``.

    The fraction of s is truncated for integers.
    """
    sigma = op.float("scalar", 1.0)
    if not is_real(op.dtype_of(op.inputs[0])):
        sigma = math.trunc(sigma) if math.isfinite(sigma) else sigma

    def compute(x: Value) -> Value:
        size = op.emit("Abs", x)
        squared = x * x * (0.5 * sigma**2)
        if sigma == 0:
            return squared
        bend = sigma**-2
        return op.where(size < bend, squared, size - 0.5 * bend)

    return through_real(op, op.inputs[:1], compute)


@table.register("_contrib_quadratic")
def quadratic(op: Operation) -> Value:
    """Evaluate ``a`` x^2 + ``b`` x + ``c``."""
    a, b, c = (op.float(name, 0.0) for name in "abc")

    def compute(x: Value) -> Value:
        return x * (x * a + b) + c

    return through_real(op, op.inputs[:1], compute)


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
    # In MXNet's order, which determines the truncation of integers.
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
