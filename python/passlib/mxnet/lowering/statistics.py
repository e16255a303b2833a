"""Densities of distributions, draws that need rejection, and counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, vector
from passlib.mxnet.lowering.elementwise.special import log_gamma
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.lowering.table import table


def _uniform(op: Operation, x: Value, low: Value, high: Value) -> Value:
    """Return -log(high - low): MXNet does not ask whether the sample is inside."""
    return -op.emit("Log", high - low) + x * 0


def _normal(op: Operation, x: Value, mean: Value, deviation: Value) -> Value:
    ratio = (x - mean) / deviation
    return ratio * ratio * -0.5 - 0.5 * math.log(2 * math.pi) - op.emit("Log", deviation)


def _gamma(op: Operation, x: Value, shape: Value, rate: Value) -> Value:
    level = shape * op.emit("Log", rate) - log_gamma(op, shape)
    return level + (shape - 1) * op.emit("Log", x) - rate * x


def _negative_binomial(op: Operation, x: Value, limit: Value, chance: Value) -> Value:
    ways = log_gamma(op, x + limit) - log_gamma(op, limit) - log_gamma(op, x + 1)
    return ways + limit * op.emit("Log", chance) + x * op.emit("Log", 1 - chance)


def _generalized(op: Operation, x: Value, mean: Value, dispersion: Value) -> Value:
    limit = op.emit("Reciprocal", dispersion)
    return _negative_binomial(op, x, limit, limit / (limit + mean))


_DENSITIES: dict[str, tuple[int, Callable[..., Value]]] = {
    "uniform": (2, _uniform),
    "normal": (2, _normal),
    "exponential": (1, lambda op, x, rate: op.emit("Log", rate) - rate * x),
    "gamma": (2, _gamma),
    "poisson": (1, lambda op, x, rate: x * op.emit("Log", rate) - log_gamma(op, x + 1) - rate),
    "negative_binomial": (2, _negative_binomial),
    "generalized_negative_binomial": (2, _generalized),
}
"""By name: the number of parameters, and the logarithm of the density."""


def density(name: str, op: Operation) -> Value:
    """Compute the density of samples (s..., n...) for parameters (s...).

    With ``is_log`` the logarithm.
    """
    count, logarithm = _DENSITIES[name]
    sample, *parameters = op.operands(1 + count)
    rank = op.rank_of(sample)
    wide = [
        value
        if op.rank_of(value) == rank
        else op.emit("Unsqueeze", value, range(op.rank_of(value), rank))
        for value in parameters
    ]
    return _finished(op, logarithm(op, sample, *wide))


@table.register("_random_pdf_dirichlet", "random_pdf_dirichlet")
def dirichlet(op: Operation) -> Value:
    """Compute the density of points (s..., n..., k) for concentrations (s..., k)."""
    sample, alpha = op.operands(2)
    rank = op.rank_of(sample)
    axis = vector(op, -1)
    level = log_gamma(op, op.emit("ReduceSum", alpha, axis, keepdims=0)) - op.emit(
        "ReduceSum", log_gamma(op, alpha), axis, keepdims=0
    )
    missing = rank - op.rank_of(alpha)
    if missing:
        places = vector(op, *range(op.rank_of(alpha) - 1, rank - 1))
        alpha = op.emit("Unsqueeze", alpha, places)
        level = op.emit("Unsqueeze", level, places)
    terms = (alpha - 1) * op.emit("Log", sample)
    return _finished(op, op.emit("ReduceSum", terms, axis, keepdims=0) + level)


def _finished(op: Operation, logarithm: Value) -> Value:
    return logarithm if op.bool("is_log", False) else op.emit("Exp", logarithm)


for _name in _DENSITIES:
    table.register(f"_random_pdf_{_name}", f"random_pdf_{_name}")(partial(density, _name))


@table.register("_histogram", "histogram", "_npi_histogram")
def histogram(op: Operation) -> Sequence[Value]:
    """Count numbers between edges: int64 counts (n,), and the edges (n + 1,).

    There are ``bin_cnt`` intervals of equal width over ``range``, or edges come as the second
    input. The last interval includes its end. Edges between integers are truncated to integers.
    """
    data = flattened(op, op.inputs[0])
    count = op.optional_int("bin_cnt")
    if count is None:
        edges = op.operands(2)[1]
        number = op.shape_of(edges, 1)[0]
    else:
        if op.attr("range", "None") == "None":
            op.unsupported("is required with bin_cnt", "range")
        bounds = op.floats("range")
        if len(bounds) != 2:
            op.invalid("does not have 2 numbers", "range")
        low, high = bounds
        if count < 1 or not low < high:
            op.invalid("leaves no interval", "bin_cnt")
        op.affordable(count)
        steps = np.arange(count + 1)
        exact = (high * steps + low * (count - steps)) / count
        if not is_real(op.dtype_of(data)):
            edges = op.constant_like(np.trunc(exact), data)
            return _counted_integers(op, data, edges, (low, high, count)), edges
        edges = op.constant_like(exact, data)
        number = count + 1
    least = op.cast(op.emit("Unsqueeze", data, [1]) >= edges, np.int64)
    beyond = op.emit("ReduceSum", least, [0], keepdims=0)
    above = op.cast(data > op.emit("Slice", edges, [number - 1], [number]), np.int64)
    over = op.emit("ReduceSum", above, [0], keepdims=1)
    inner = op.emit("Slice", beyond, [0], [number - 1])
    if number > 2:
        over = op.emit("Concat", op.emit("Slice", beyond, [1], [number - 1]), over, axis=0)
    return inner - over, op.emit("Identity", edges)


def _counted_integers(
    op: Operation, data: Value, edges: Value, bins: tuple[float, float, int]
) -> Value:
    """Count integers (n,) in intervals with truncated edges, of which some are equal.

    As in MXNet, a number belongs to the interval of exact edges, or to the one next to it that
    its truncated edges require.
    """
    low, high, count = bins
    wide = op.cast(data, np.float64)
    exact = op.emit("Floor", (wide - low) * float(count) / (high - low))
    limits = op.constant(0.0), op.constant(count - 1.0)
    place = op.cast(op.emit("Clip", exact, *limits), np.int64)
    place = place - op.cast(data < op.emit("Gather", edges, place), np.int64)
    above = (data >= op.emit("Gather", edges, place + 1)) & (place < count - 1)
    place = place + op.cast(above, np.int64)
    place = op.where((wide >= low) & (wide <= high), place, -1)
    found = op.emit("Unsqueeze", place, [1]).equals(vector(op, *range(count)))
    return op.emit("ReduceSum", op.cast(found, np.int64), [0], keepdims=0)
