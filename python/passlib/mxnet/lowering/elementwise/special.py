"""Special functions: gamma, its logarithm, the error function and its inverse.

Those that ONNX lacks are computed in float64, in which the approximations below are accurate to
about 1e-15, and rounded to the element type of the input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import as_number, is_real, through_real
from passlib.mxnet.lowering.table import table

_LANCZOS_G = 7.0
_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""Coefficients of the Lanczos series for g = 7 and nine terms (P. Godfrey, 2001)."""

# Rational approximations of the normal quantile: M. J. Wichura, algorithm AS 241 (PPND16),
# Applied Statistics 37 (1988) 477-484; lowest power first, numerator then denominator.
_CENTRE = (
    (3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
     45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
     21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
)  # fmt: skip
_NEAR_TAIL = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
     7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_FAR_TAIL = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _log_gamma_right(op: Operation, x: Value) -> Value:
    """Compute log(gamma(x)) for x >= 0.5."""
    series = op.constant_like(_LANCZOS[0], x)
    for index, coefficient in enumerate(_LANCZOS[1:]):
        series = series + coefficient / (x + float(index))
    shifted = x + (_LANCZOS_G - 0.5)
    body = (x + -0.5) * op.emit("Log", shifted) - shifted + 0.5 * math.log(2 * math.pi)
    return body + op.emit("Log", series)


def _log_gamma_parts(op: Operation, x: Value) -> tuple[Value, Value, Value]:
    """Return whether x < 0.5, log(gamma) of x or else of 1 - x, and |sin(pi x)|."""
    left = x < 0.5
    right = _log_gamma_right(op, op.where(left, 1 - x, x))
    return left, right, op.emit("Sin", (x - op.emit("Floor", x)) * np.pi)


def _is_whole(op: Operation, x: Value) -> Value:
    return x.equals(op.emit("Floor", x))


def log_gamma(op: Operation, value: Value) -> Value:
    """Compute log|gamma(x)| by the Lanczos series, below 0.5 by reflection.

    The reflection formula is gamma(x) gamma(1 - x) = pi / sin(pi x).
    """

    def compute(x: Value) -> Value:
        left, right, sine = _log_gamma_parts(op, x)
        result = op.where(left, np.log(np.pi) - op.emit("Log", sine) - right, right)
        infinity = op.constant_like(np.inf, x)
        return op.where(_is_whole(op, x) & (x < 0.5) | op.emit("IsInf", x), infinity, result)

    return through_real(op, (value,), compute, double=True, exact=True)


@table.register("gammaln", "_npx_gammaln")
def gammaln(op: Operation) -> Value:
    """Compute log|gamma(x)|."""
    return log_gamma(op, op.inputs[0])


@table.register("gamma", "_npx_gamma")
def gamma(op: Operation) -> Value:
    """Compute the gamma function; infinite at 0, NaN at the negative integers.

    The value at a whole number is whole, so it is rounded before it is converted.
    """
    whole = not is_real(op.dtype_of(op.inputs[0]))

    def compute(x: Value) -> Value:
        left, right, sine = _log_gamma_parts(op, x)
        half = op.emit("Floor", x) * 0.5
        signed = op.where(op.emit("Floor", half) < half, -sine, sine)
        result = op.where(left, op.emit("Exp", -right) * np.pi / signed, op.emit("Exp", right))
        result = op.where(_is_whole(op, x) & (x < 0.0), np.nan, result)
        at_zero = x.equals(0)
        at_zero = op.where(at_zero, op.emit("Reciprocal", x), result)
        result = op.where(x.equals(np.inf), x, at_zero)
        return op.emit("Round", result) if whole else result

    return through_real(op, op.inputs[:1], compute, double=True, exact=True)


_ERF_STEPS = 16
_ERF_END = 6
"""Where the error function is 1 in float64."""
_ERF_TERMS = 11


def _erf_series() -> np.ndarray:
    """Compute the Taylor coefficients of the error function at each step: (steps, terms)."""
    x = np.arange(_ERF_END * _ERF_STEPS + 1) / _ERF_STEPS
    derivatives = [2 / math.sqrt(math.pi) * np.exp(-x * x)]
    for order in range(1, _ERF_TERMS - 1):
        # The derivative of order n + 1 is -2 x times that of n, less 2 (n - 1) that of n - 1.
        before = derivatives[order - 2] * (2 * (order - 1)) if order > 1 else 0
        derivatives.append(-2 * x * derivatives[-1] - before)
    rows = [np.array([math.erf(start) for start in x])]
    rows += [each / math.factorial(order) for order, each in enumerate(derivatives, 1)]
    return np.stack(rows)


def erf_of(op: Operation, x: Value) -> Value:
    """Compute the error function of a floating-point value, in float64 by its Taylor series.

    ONNX Runtime computes it in single precision.
    """
    if op.dtype_of(x) != np.float64:
        return op.emit("Erf", x)
    size = op.emit("Abs", x)
    near = op.where(size < _ERF_END, size, _ERF_END)
    step = op.emit("Round", near * _ERF_STEPS)
    gap = near - step * (1 / _ERF_STEPS)
    place = op.cast(step, np.int64)
    terms = [op.emit("Gather", op.constant_like(row, x), place) for row in _erf_series()]
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = result * gap + term
    return op.where(op.emit("IsNaN", x), x, op.where(x < 0, -result, result))


@table.register("erf", "_npx_erf")
def erf(op: Operation) -> Value:
    """Compute the error function; of integers it is 0, or 1 from |x| = 6 on, with the sign of x."""
    x = op.inputs[0]
    if is_real(op.dtype_of(x)):
        return erf_of(op, x)

    def compute(x: Value) -> Value:
        return op.emit("Sign", x) * as_number(op, op.emit("Abs", x) >= 6, x)

    return through_real(op, [x], compute, exact=True)


def _polynomial(op: Operation, x: Value, coefficients: Sequence[float]) -> Value:
    value = op.constant_like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _ratio(op: Operation, x: Value, pair: tuple[Sequence[float], Sequence[float]]) -> Value:
    return _polynomial(op, x, pair[0]) / _polynomial(op, x, pair[1])


@table.register("erfinv", "_npx_erfinv")
def erfinv(op: Operation) -> Value:
    """Compute the inverse error function by the normal quantile q: q((x + 1) / 2) / sqrt(2)."""

    def compute(x: Value) -> Value:
        size = op.emit("Abs", x)
        half = x * 0.5
        middle = half * _ratio(op, 0.180625 - half * half, _CENTRE)
        depth = op.emit("Sqrt", -op.emit("Log", (1 - size) * 0.5))
        near = _ratio(op, depth + -1.6, _NEAR_TAIL)
        far = _ratio(op, depth + -5.0, _FAR_TAIL)
        outer = op.emit("Sign", x) * op.where(depth <= 5, near, far)
        quantile = op.where(size <= 0.85, middle, outer) * np.sqrt(0.5)
        return op.where(size.equals(1), x / 0, quantile)

    return through_real(op, op.inputs[:1], compute, double=True, exact=True)
