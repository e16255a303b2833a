"""Draws from the gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.draws.continuous import (
    drawn,
    drawn_shape,
    parameters,
    types_of,
    uniform_inside,
)
from passlib.mxnet.lowering.table import table

_ROUNDS = 12
"""Each candidate is accepted with a probability above 0.95, so all fail once in 10 ** 15."""


def standard_gamma(op: Operation, alpha: Value, shape: Sequence[int]) -> Value:
    """Draw with shape parameter ``alpha`` and scale 1, by the method of Marsaglia and Tsang.

    A parameter below 1 is raised by 1, and the draw multiplied by u^(1 / alpha).
    """
    dtype = op.dtype_of(alpha)

    def number(value: float) -> Value:
        return op.constant(value, dtype)

    small = alpha < number(1)
    raised = op.where(small, alpha + number(1), alpha)
    d = raised - number(1 / 3)
    c = op.emit("Reciprocal", op.emit("Sqrt", d * number(9)))
    result = op.emit("Expand", d, op.constant(np.array(shape, np.int64)))
    for _ in range(_ROUNDS):
        x = drawn(op, "RandomNormal", shape, dtype)
        root = number(1) + c * x
        v = root * root * root
        positive = v > number(0)
        safe = op.where(positive, v, number(1))
        half_square = x * x * number(0.5)
        spread = number(1) - safe + op.emit("Log", safe)
        bound = half_square + d * spread
        accepted = op.emit("Log", uniform_inside(op, shape, dtype)) < bound
        accepted = accepted & positive
        result = op.where(accepted, d * safe, result)
    power = uniform_inside(op, shape, dtype) ** op.emit("Reciprocal", alpha)
    return result * op.where(small, power, number(1))


@table.register("_npi_gamma")
def gamma(op: Operation) -> Value:
    """Draw with the parameters ``shape`` and ``scale``."""
    dtype, working = types_of(op)
    alpha, scale = parameters(op, ("shape", "scale"), working)
    draw = standard_gamma(op, alpha, drawn_shape(op, (alpha, scale)))
    return op.cast(draw * scale, dtype)
