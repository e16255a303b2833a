"""Draws of truth values, of places with and without replacement, and of counts."""

from __future__ import annotations

import math

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.draws.parameters import (
    drawn,
    drawn_shape,
    parameters,
    types_of,
    uniform_inside,
)
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.random import whole_numbers

_SINGLE = np.dtype(np.float32)


@table.register("_npi_bernoulli")
def bernoulli(op: Operation) -> Value:
    """Draw 1 with probability ``prob``, or that whose log odds are ``logit``."""
    dtype, working = types_of(op)
    is_logit = op.bool("is_logit")
    (chance,) = parameters(op, ("logit" if is_logit else "prob",), working)
    shape = drawn_shape(op, (chance,))
    if is_logit:
        chance = op.emit("Sigmoid", chance)
    return op.cast(op.emit("Less", drawn(op, "RandomUniform", shape, working), chance), dtype)


def _sizes(op: Operation, name: str = "size") -> tuple[int, ...]:
    sizes = op.ints(name, ()) if op.attr(name, "None") != "None" else ()
    if min(sizes, default=0) < 0:
        op.invalid("is negative", name)
    return sizes


@table.register("_npi_random_randint")
def randint(op: Operation) -> Value:
    """Draw an array of ``shape`` uniformly from the integers ``low`` .. ``high`` - 1."""
    return whole_numbers(op, drawn(op, "RandomUniform", _sizes(op, "shape"), np.dtype(np.float64)))


@table.register("_npi_choice")
def choice(op: Operation) -> Value:
    """Draw places of an array, or below ``a``, as int64; with ``weighted`` by their chances.

    Without ``replace`` no place is drawn twice: the places of the largest scores count, which
    are uniform, or the logarithm of the chance with Gumbel noise.
    """
    rest = list(op.inputs)
    limit = op.optional_int("a")
    weighted = op.bool("weighted", False)
    if len(rest) != (limit is None) + weighted:
        raise Misfit(f"it has {len(rest)} inputs, which its attributes do not name")
    total = op.shape_of(rest.pop(0), 1)[0] if limit is None else limit
    chances = op.cast(rest.pop(0), np.float32) if weighted else None
    sizes = _sizes(op)
    count = math.prod(sizes)
    if total < 1 or (chances is not None and op.shape_of(chances) != (total,)):
        raise Misfit(f"there are not {total} places with a chance each")
    logarithms = None if chances is None else op.emit("Log", chances)
    if not count:
        return op.emit("Expand", op.constant(0, np.int64), vector(op, *sizes))
    if op.bool("replace", True):
        places = _with_replacement(op, total, count, logarithms)
    else:
        if count > total:
            op.invalid(f"is more than the {total} places without replacement", "size")
        scores = uniform_inside(op, [total], _SINGLE)
        if logarithms is not None:
            noise = op.emit("Log", op.emit("Neg", op.emit("Log", scores)))
            scores = op.emit("Sub", logarithms, noise)
        places = op.emit("TopK", scores, vector(op, count), axis=0, sorted=1, outputs=2)[1]
    return op.emit("Reshape", places, vector(op, *sizes))


def _with_replacement(op: Operation, total: int, count: int, logarithms: Value | None) -> Value:
    if logarithms is None:
        double = np.dtype(np.float64)
        spread = op.emit(
            "Mul", drawn(op, "RandomUniform", [count], double), op.constant(total, double)
        )
        return op.cast(op.emit("Floor", spread), np.int64)
    row = op.emit("Unsqueeze", logarithms, vector(op, 0))
    return op.emit("Multinomial", row, sample_size=count, dtype=np.dtype(np.int64))


@table.register("_npi_multinomial")
def multinomial(op: Operation) -> Value:
    """Count how often each category occurs in ``n`` draws: (``size``..., categories), int64."""
    if op.inputs:
        chances = op.cast(op.inputs[0], np.float32)
    else:
        chances = op.constant(op.floats("pvals"), np.float32)
    (categories,) = op.shape_of(chances, 1)
    sizes, draws = _sizes(op), op.int("n")
    if draws < 0:
        op.invalid("is negative", "n")
    rows = math.prod(sizes)
    if not rows or not draws or not categories:
        return op.emit("Expand", op.constant(0, np.int64), vector(op, *sizes, categories))
    logarithms = op.emit("Expand", op.emit("Log", chances), vector(op, rows, categories))
    code = np.dtype(np.int64)
    places = op.emit("Multinomial", logarithms, sample_size=draws, dtype=code)
    ones = op.emit("Expand", op.constant(1, code), vector(op, rows, draws))
    counts = op.emit("Expand", op.constant(0, code), vector(op, rows, categories))
    counts = op.emit("ScatterElements", counts, places, ones, axis=1, reduction="add")
    return op.emit("Reshape", counts, vector(op, *sizes, categories))
