"""Functions of a single element; shape and element type stay."""

from __future__ import annotations

import math

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import (
    as_number,
    is_real,
    larger,
    smaller,
    through_real,
)
from passlib.mxnet.lowering.table import table


@table.register("abs")
def absolute(op: Operation) -> Value:
    """Compute |x|."""
    return op.emit("Abs", op.inputs[0])


@table.register("negative")
def negative(op: Operation) -> Value:
    """Negate; unsigned integers wrap."""
    x = op.inputs[0]
    if op.dtype_of(x).kind == "u":
        return op.emit("Sub", op.constant_like(0, x), x)
    return op.emit("Neg", x)


@table.register("square")
def square(op: Operation) -> Value:
    """Compute x * x, that of integers in float32."""
    return through_real(op, op.inputs[:1], lambda x: op.emit("Mul", x, x))


@table.register("sign", "_contrib_sign_ste")
def sign(op: Operation) -> Value:
    """Return -1, 0 or 1; the sign of NaN is 0 in MXNet."""
    x = op.inputs[0]
    # ONNX Runtime before 1.32 has wrong signs of int64, as it has a wrong Clip.
    if not is_real(op.dtype_of(x)) and op.dtype_of(x) != np.int64:
        return op.emit("Sign", x)
    zero = op.constant_like(0, x)
    above, below = op.emit("Greater", x, zero), op.emit("Less", x, zero)
    return op.emit("Sub", as_number(op, above, x), as_number(op, below, x))


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
        return op.emit("Div", x, op.emit("Add", op.emit("Abs", x), op.constant_like(1, x)))

    return through_real(op, op.inputs[:1], compute, exact=True)


@table.register("hard_sigmoid")
def hard_sigmoid(op: Operation) -> Value:
    """Compute min(1, max(0, alpha x + beta)), for floating point only."""
    x = op.inputs[0]
    if not is_real(op.dtype_of(x)):
        op.unsupported(f"is defined for floating-point numbers, not for {op.dtype_of(x)}")
    alpha, beta = op.float("alpha", 0.2), op.float("beta", 0.5)
    line = op.emit("Add", op.emit("Mul", x, op.constant_like(alpha, x)), op.constant_like(beta, x))
    return _between(op, line, op.constant_like(0, x), op.constant_like(1, x))


def _between(op: Operation, x: Value, low: Value, high: Value) -> Value:
    if op.dtype_of(x).name not in ("bfloat16", "int64"):
        return op.emit("Clip", x, low, high)
    # ONNX Runtime has no Clip for bfloat16, nor the operators that it would replace Clip by.
    return smaller(op, larger(op, x, low), high)


@table.register("logical_not")
def logical_not(op: Operation) -> Value:
    """Return 1 where x is 0, else 0, in the element type of x."""
    x = op.inputs[0]
    return as_number(op, op.emit("Equal", x, op.constant_like(0, x)), x)


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
    raised = op.emit("Where", op.emit("Less", x, low), low, x)
    return op.emit("Where", op.emit("Greater", x, high), high, raised)


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
        squared = op.emit("Mul", op.emit("Mul", x, x), op.constant_like(0.5 * sigma**2, x))
        if sigma == 0:
            return squared
        bend = sigma**-2
        linear = op.emit("Sub", size, op.constant_like(0.5 * bend, x))
        inner = op.emit("Less", size, op.constant_like(bend, x))
        return op.emit("Where", inner, squared, linear)

    return through_real(op, op.inputs[:1], compute)


@table.register("_contrib_quadratic")
def quadratic(op: Operation) -> Value:
    """Evaluate ``a`` x^2 + ``b`` x + ``c``."""
    a, b, c = (op.float(name, 0.0) for name in "abc")

    def compute(x: Value) -> Value:
        inner = op.emit("Add", op.emit("Mul", x, op.constant_like(a, x)), op.constant_like(b, x))
        return op.emit("Add", op.emit("Mul", x, inner), op.constant_like(c, x))

    return through_real(op, op.inputs[:1], compute)
