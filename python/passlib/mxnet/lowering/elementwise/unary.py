"""Functions of a single element; shape and element type stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import (
    as_number,
    element_type,
    is_real,
    larger,
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
    "_copy",
    "identity",
    "BlockGrad",
    "stop_gradient",
    "make_loss",
    "MakeLoss",
    "_identity_with_attr_like_rhs",
    "_contrib_gradientmultiplier",
    "_copyto",
    "_CrossDeviceCopy",
    "LinearRegressionOutput",
    "_sparse_LinearRegressionOutput",
    "MAERegressionOutput",
    "_sparse_MAERegressionOutput",
    "SVMOutput",
)
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
    return op.emit("Identity", data) if _is_fixed(op.dtype_of(data)) else op.cast(data, target)


def _is_fixed(dtype: np.dtype) -> bool:
    return dtype.name not in ("bfloat16", "float16", "float32")


@table.register("amp_multicast")
def amp_multicast(op: Operation) -> Sequence[Value]:
    """Convert inputs of float16 and float32 to one type; others stay as they are.

    It is float32 if there is any, else the type of the first input, whatever that is. With
    ``cast_narrow`` it is float16 if there is any, else nothing changes.
    """
    types = [op.dtype_of(value) for value in op.inputs]
    narrow = op.bool("cast_narrow", False)
    preferred = np.dtype(np.float16 if narrow else np.float32)
    if preferred not in types and narrow:
        return [op.emit("Identity", value) for value in op.inputs]
    target = preferred if preferred in types else types[0]
    return [
        op.emit("Identity", value) if _is_fixed(dtype) else op.cast(value, target)
        for value, dtype in zip(op.inputs, types, strict=True)
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
