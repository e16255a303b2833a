"""Draws by counting arrivals, and a random order.

As with all random numbers, results agree with MXNet's in distribution only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import reshaped, vector
from passlib.mxnet.lowering.draws.gamma import standard_gamma
from passlib.mxnet.lowering.real_arithmetic import element_type
from passlib.mxnet.lowering.table import table

_REAL = np.dtype(np.float32)
_MOST = 100_000
"""Rounds of a loop; a draw takes more with a probability that rounds to 0."""


def _like(op: Operation, number: float, value: Value) -> Value:
    return op.constant_like(number, value)


def _loop(
    op: Operation,
    states: Sequence[Value],
    step: Callable[[Sequence[Value]], tuple[Value, Sequence[Value]]],
) -> list[Value]:
    """Repeat ``step``, which returns whether to go on, and new states of the same shapes."""
    with op.body() as body:
        body.input("round", np.dtype(np.int64), ())
        body.input("goes_on", np.dtype(bool), ())
        goes_on, ends = step([body.input("state", v.dtype, v.shape) for v in states])
        body.output(goes_on)
        for end, state in zip(ends, states, strict=True):
            body.output(end, state.shape)
    return op.emit(
        "Loop",
        op.constant(_MOST, np.int64),
        op.constant(True),
        *states,
        outputs=len(states),
        types=[TypeSpec(value.dtype, value.shape) for value in states],
        body=body.graph(),
    )


def _some(op: Operation, flags: Value) -> Value:
    return op.cast(op.emit("ReduceMax", op.cast(flags, np.int32), keepdims=0), np.bool_)


def _positive_uniform(op: Operation, like: Value) -> Value:
    """Draw from (0, 1]."""
    return _like(op, 1, like) - op.emit("RandomUniformLike", like, dtype=_REAL)


def gamma(op: Operation, shape: Value, scale: Value) -> Value:
    """Draw from the gamma distribution of a shape and a scale."""
    return standard_gamma(op, shape, op.shape_of(shape)) * scale


def poisson(op: Operation, rate: Value) -> Value:
    """Draw from the Poisson distribution: count arrivals of unit rate until ``rate``."""

    def step(states: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        elapsed, count = states
        gap = -op.emit("Log", _positive_uniform(op, elapsed))
        elapsed = elapsed + gap
        arrived = elapsed < rate
        count = count + op.cast(arrived, _REAL)
        return _some(op, arrived), [elapsed, count]

    zero = rate * _like(op, 0, rate)
    return _loop(op, [zero, zero], step)[1]


def negative_binomial(op: Operation, limit: Value, chance: Value) -> Value:
    """Draw failures before ``limit`` successes of probability ``chance``."""
    odds = (_like(op, 1, chance) - chance) / chance
    return poisson(op, gamma(op, limit, odds))


def generalized_negative_binomial(op: Operation, mean: Value, dispersion: Value) -> Value:
    """Draw from the negative binomial distribution of a mean and a dispersion."""
    shape = op.emit("Reciprocal", dispersion)
    return poisson(op, gamma(op, shape, mean * dispersion))


_DRAWS: dict[str, tuple[Callable[..., Value], tuple[tuple[str, float], ...]]] = {
    "gamma": (gamma, (("alpha", 1.0), ("beta", 1.0))),
    "poisson": (poisson, (("lam", 1.0),)),
    "negative_binomial": (negative_binomial, (("k", 1.0), ("p", 1.0))),
    "generalized_negative_binomial": (generalized_negative_binomial, (("mu", 1.0), ("alpha", 1.0))),
}
"""By name: the function that draws, and the parameters with their defaults."""


def _by_attributes(name: str, op: Operation) -> Value:
    """Draw with parameters and shape from attributes."""
    function, parameters = _DRAWS[name]
    shape = op.ints("shape", (1,))
    if not shape or 0 in shape:
        op.unsupported("leaves a size to be inferred from other nodes", "shape")
    op.affordable(*shape)
    values = [np.full(shape, op.float(key, default)) for key, default in parameters]
    drawn = function(op, *(op.constant(value, _REAL) for value in values))
    return op.cast(drawn, element_type(op, np.float32))


def _like_input(name: str, op: Operation) -> Value:
    """Draw with parameters from attributes, shape and element type from the input."""
    function, parameters = _DRAWS[name]
    size = vector(op, *op.shape_of(op.inputs[0]))
    numbers = (op.constant(op.float(key, default), _REAL) for key, default in parameters)
    drawn = function(op, *(op.emit("Expand", number, size) for number in numbers))
    return op.cast(drawn, op.dtype_of(op.inputs[0]))


def _by_inputs(name: str, op: Operation) -> Value:
    """Draw ``shape`` numbers for each element of the parameter arrays (s...): (s..., shape...)."""
    function, parameters = _DRAWS[name]
    extra, sizes = op.ints("shape", ()), op.shape_of(op.inputs[0])
    size = vector(op, *sizes, *extra)
    form = [*sizes, *[1] * len(extra)]
    values = [
        op.emit("Expand", reshaped(op, op.cast(value, _REAL), form), size)
        for value in op.operands(len(parameters))
    ]
    return op.cast(function(op, *values), element_type(op, np.float32))


for _name in _DRAWS:
    table.register(f"_random_{_name}", f"random_{_name}")(partial(_by_attributes, _name))
    table.register(f"_random_{_name}_like")(partial(_like_input, _name))
    table.register(f"_sample_{_name}", f"sample_{_name}")(partial(_by_inputs, _name))


@table.register("_shuffle", "shuffle")
def shuffle(op: Operation) -> Value:
    """Put the slices of the first axis in random order."""
    (data,) = op.operands(1)
    rows = op.shape_of(data, least=1)[0]
    keys = op.emit("RandomUniform", shape=[rows], dtype=_REAL)
    order = op.emit("TopK", keys, [rows], outputs=2, axis=0)[1]
    return op.emit("Gather", data, order, axis=0)
