"""Random numbers with MXNet's distributions, from another generator.

Results therefore agree with MXNet's in distribution only. Every run draws anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import reshaped
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.real_arithmetic import element_type
from passlib.mxnet.lowering.table import table

_FLOAT32 = np.dtype(np.float32)
_LEAST = 2.0**-26
"""Half of the smallest step of a uniform draw in single precision."""

_MOST_ROUNDS = 100_000
"""Rounds of a loop; a draw takes more with a probability that rounds to 0."""

_GAMMA_ROUNDS = 12
"""Each candidate is accepted with a probability above 0.95, so all fail once in 10 ** 15."""

_Transform = Callable[..., Value]


def _types(op: Operation) -> tuple[np.dtype, np.dtype]:
    """Return the element type of the result, and the type to draw in."""
    dtype = element_type(op, np.float32)
    return dtype, np.dtype(np.float64) if dtype == np.float64 else _FLOAT32


def _shape(op: Operation) -> list[int]:
    shape = op.ints("shape", (1,))
    if not shape or 0 in shape:
        op.unsupported("leaves a size to be inferred from other nodes", "shape")
    return list(shape)


def _drawn(op: Operation, onnx_operator: str, shape: Sequence[int], dtype: np.dtype) -> Value:
    """Draw an array of a shape, which may be empty or without axes."""
    count = math.prod(shape)
    if not count:
        return op.emit("Expand", op.constant(0, dtype), shape)
    return op.emit("Reshape", op.emit(onnx_operator, shape=[count], dtype=dtype), shape)


def _uniform_inside(op: Operation, shape: Sequence[int], dtype: np.dtype) -> Value:
    """Draw uniformly between 0 and 1, never 0 itself: logarithms stay finite."""
    return op.emit("Max", _drawn(op, "RandomUniform", shape, dtype), _LEAST)


def _scaled(op: Operation, standard: Value, loc: Value, scale: Value) -> Value:
    return standard * scale + loc


def _from_uniform(op: Operation, u: Value, low: Value, high: Value) -> Value:
    return u * (high - low) + low


def _from_exponential(op: Operation, u: Value, rate: Value) -> Value:
    """Apply the inverse distribution function; 1 - u is never 0."""
    return -op.emit("Log", 1 - u) / rate


_SIMPLE: dict[str, tuple[str, _Transform, tuple[tuple[str, float], ...]]] = {
    "uniform": ("RandomUniform", _from_uniform, (("low", 0.0), ("high", 1.0))),
    "normal": ("RandomNormal", _scaled, (("loc", 0.0), ("scale", 1.0))),
    "exponential": ("RandomUniform", _from_exponential, (("lam", 1.0),)),
}
"""By name: the ONNX operator that draws, the transformation, and the parameters with defaults."""


def _simple_by_attributes(name: str, op: Operation) -> Value:
    """Draw with parameters and shape from attributes."""
    source, transform, parameters = _SIMPLE[name]
    dtype, working = _types(op)
    draw = op.emit(source, shape=_shape(op), dtype=working)
    values = [op.constant(op.float(key, default), working) for key, default in parameters]
    return op.cast(transform(op, draw, *values), dtype)


def _simple_like_input(name: str, op: Operation) -> Value:
    """Draw with parameters from attributes, shape and element type from the input."""
    source, transform, parameters = _SIMPLE[name]
    data = op.inputs[0]
    draw = op.emit(source + "Like", op.cast(data, np.float32), dtype=_FLOAT32)
    values = [op.constant(op.float(key, default), np.float32) for key, default in parameters]
    return op.cast(transform(op, draw, *values), op.dtype_of(data))


def _simple_by_inputs(name: str, op: Operation) -> Value:
    """Draw ``shape`` numbers for each element of the parameter arrays (s...): (s..., shape...)."""
    source, transform, _ = _SIMPLE[name]
    dtype, working = _types(op)
    extra, sizes = op.ints("shape", ()), op.shape_of(op.inputs[0])
    draw = op.emit(source, shape=[*sizes, *extra], dtype=working)
    form = [*sizes, *[1] * len(extra)]
    values = [reshaped(op, op.cast(value, working), form) for value in op.inputs]
    return op.cast(transform(op, draw, *values), dtype)


for _name in _SIMPLE:
    _short = () if _name == "exponential" else (_name,)
    table.register(f"_random_{_name}", f"random_{_name}", *_short)(
        partial(_simple_by_attributes, _name)
    )
    table.register(f"_random_{_name}_like")(partial(_simple_like_input, _name))
    table.register(f"_sample_{_name}", f"sample_{_name}")(partial(_simple_by_inputs, _name))


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
        op.constant(_MOST_ROUNDS, np.int64),
        op.constant(True),
        *states,
        outputs=len(states),
        types=[TypeSpec(value.dtype, value.shape) for value in states],
        body=body.graph(),
    )


def _standard_gamma(op: Operation, alpha: Value, shape: Sequence[int]) -> Value:
    """Draw with shape parameter ``alpha`` and scale 1, by the method of Marsaglia and Tsang.

    A parameter below 1 is raised by 1, and the draw multiplied by u^(1 / alpha).
    """
    dtype = op.dtype_of(alpha)
    small = alpha < 1
    d = op.where(small, alpha + 1, alpha) - 1 / 3
    c = op.emit("Reciprocal", op.emit("Sqrt", d * 9))
    result = op.emit("Expand", d, shape)
    for _ in range(_GAMMA_ROUNDS):
        x = _drawn(op, "RandomNormal", shape, dtype)
        root = 1 + c * x
        v = root * root * root
        positive = v > 0
        safe = op.where(positive, v, 1)
        bound = x * x * 0.5 + d * (1 - safe + op.emit("Log", safe))
        accepted = (op.emit("Log", _uniform_inside(op, shape, dtype)) < bound) & positive
        result = op.where(accepted, d * safe, result)
    power = _uniform_inside(op, shape, dtype) ** op.emit("Reciprocal", alpha)
    return result * op.where(small, power, 1)


def _gamma(op: Operation, shape: Value, scale: Value) -> Value:
    return _standard_gamma(op, shape, op.shape_of(shape)) * scale


def _poisson(op: Operation, rate: Value) -> Value:
    """Count arrivals of unit rate until ``rate``."""

    def step(states: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        elapsed, count = states
        positive = 1 - op.emit("RandomUniformLike", elapsed, dtype=_FLOAT32)
        elapsed = elapsed - op.emit("Log", positive)
        arrived = elapsed < rate
        some = op.emit("ReduceMax", op.cast(arrived, np.int32), keepdims=0)
        return op.cast(some, np.bool_), [elapsed, count + op.cast(arrived, _FLOAT32)]

    zero = rate * 0
    return _loop(op, [zero, zero], step)[1]


def _negative_binomial(op: Operation, limit: Value, chance: Value) -> Value:
    """Draw failures before ``limit`` successes of probability ``chance``."""
    return _poisson(op, _gamma(op, limit, (1 - chance) / chance))


def _overdispersed(op: Operation, mean: Value, dispersion: Value) -> Value:
    """Draw from the negative binomial distribution of a mean and a dispersion."""
    return _poisson(op, _gamma(op, op.emit("Reciprocal", dispersion), mean * dispersion))


_COMPOSED: dict[str, tuple[_Transform, tuple[tuple[str, float], ...]]] = {
    "gamma": (_gamma, (("alpha", 1.0), ("beta", 1.0))),
    "poisson": (_poisson, (("lam", 1.0),)),
    "negative_binomial": (_negative_binomial, (("k", 1.0), ("p", 1.0))),
    "generalized_negative_binomial": (_overdispersed, (("mu", 1.0), ("alpha", 1.0))),
}
"""By name: the function that draws, and the parameters with their defaults."""


def _composed_by_attributes(name: str, op: Operation) -> Value:
    """Draw with parameters and shape from attributes."""
    function, parameters = _COMPOSED[name]
    shape = _shape(op)
    op.affordable(*shape)
    values = [np.full(shape, op.float(key, default)) for key, default in parameters]
    result = function(op, *(op.constant(value, _FLOAT32) for value in values))
    return op.cast(result, element_type(op, np.float32))


def _composed_like_input(name: str, op: Operation) -> Value:
    """Draw with parameters from attributes, shape and element type from the input."""
    function, parameters = _COMPOSED[name]
    size = op.shape_of(op.inputs[0])
    numbers = (op.constant(op.float(key, default), _FLOAT32) for key, default in parameters)
    result = function(op, *(op.emit("Expand", number, size) for number in numbers))
    return op.cast(result, op.dtype_of(op.inputs[0]))


def _composed_by_inputs(name: str, op: Operation) -> Value:
    """Draw ``shape`` numbers for each element of the parameter arrays (s...): (s..., shape...)."""
    function, parameters = _COMPOSED[name]
    extra, sizes = op.ints("shape", ()), op.shape_of(op.inputs[0])
    form = [*sizes, *[1] * len(extra)]
    values = [
        op.emit("Expand", reshaped(op, op.cast(value, _FLOAT32), form), [*sizes, *extra])
        for value in op.operands(len(parameters))
    ]
    return op.cast(function(op, *values), element_type(op, np.float32))


for _name in _COMPOSED:
    table.register(f"_random_{_name}", f"random_{_name}")(partial(_composed_by_attributes, _name))
    table.register(f"_random_{_name}_like")(partial(_composed_like_input, _name))
    table.register(f"_sample_{_name}", f"sample_{_name}")(partial(_composed_by_inputs, _name))


def _whole_numbers(op: Operation, uniform: Value) -> Value:
    """Spread float64 draws from [0, 1) over the integers ``low`` .. ``high`` - 1."""
    low, high = op.int("low"), op.int("high")
    if not 0 < high - low <= 2**53:
        op.invalid("must be above low, by at most 2**53", "high")
    offset = op.cast(op.emit("Floor", uniform * (high - low)), np.int64)
    return op.cast(offset + low, element_type(op, np.int32))


@table.register("_random_randint", "random_randint")
def randint(op: Operation) -> Value:
    """Draw an array of ``shape`` uniformly from the integers ``low`` .. ``high`` - 1."""
    double = np.dtype(np.float64)
    return _whole_numbers(op, op.emit("RandomUniform", shape=_shape(op), dtype=double))


@table.register("_sample_multinomial", "sample_multinomial")
def sample_multinomial(op: Operation) -> Value | tuple[Value, Value]:
    """Draw categories: probabilities (s..., k) to ``dtype`` indices (s..., shape...).

    ``get_prob`` adds the logarithms of their probabilities, in the type of the input.
    """
    data, extra = op.inputs[0], op.ints("shape", ())
    sizes = op.shape_of(data)
    count = int(np.prod(extra, dtype=np.int64))
    logarithms = op.emit("Log", reshaped(op, op.cast(data, np.float32), [-1, sizes[-1]]))
    drawn = op.emit("Multinomial", logarithms, sample_size=count, dtype=np.dtype(np.int64))
    shape = (*sizes[:-1], *extra) or (1,)
    indices = op.cast(op.emit("Reshape", drawn, shape), element_type(op, np.int32))
    if not op.bool("get_prob", False):
        return indices
    chosen = op.emit("GatherElements", logarithms, drawn, axis=1)
    return indices, op.cast(op.emit("Reshape", chosen, shape), op.dtype_of(data))


@table.register("_shuffle", "shuffle")
def shuffle(op: Operation) -> Value:
    """Put the slices of the first axis in random order."""
    (data,) = op.operands(1)
    rows = op.shape_of(data, least=1)[0]
    keys = op.emit("RandomUniform", shape=[rows], dtype=_FLOAT32)
    return op.emit("Gather", data, op.emit("TopK", keys, [rows], outputs=2, axis=0)[1], axis=0)


def _parameters(
    op: Operation, names: Sequence[str], working: np.dtype, defaults: Sequence[float | None] = ()
) -> list[Value]:
    """Return each parameter: the attribute's number, or the next input where it is ``None``.

    Raises `Misfit` if there are fewer inputs, or more.
    """
    rest = list(op.inputs)
    values = []
    for place, name in enumerate(names):
        number = op.optional_float(name, defaults[place] if defaults else None)
        if number is None and not rest:
            raise Misfit(f"parameter {name!r} is neither an attribute nor an input")
        value = op.constant(number, working) if number is not None else rest.pop(0)
        values.append(op.cast(value, working))
    if rest:
        raise Misfit(f"it has {len(op.inputs)} inputs, too many for its attributes")
    return values


def _drawn_shape(op: Operation, values: Sequence[Value], *, appended: bool = False) -> list[int]:
    """Return the shape of the result: ``size``, or that to which the parameters broadcast.

    ``appended`` puts ``size`` before the shape of the parameters.
    """
    shapes = [op.shape_of(value) for value in values]
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        raise Misfit("the parameters do not broadcast") from None
    given = op.optional_ints("size")
    if given is None:
        return list(common)
    size = [number for number in given if number is not None]
    if min(size, default=0) < 0:
        op.invalid("is negative", "size")
    if appended:
        return [*size, *common]
    try:
        fits = np.broadcast_shapes(tuple(size), common) == tuple(size)
    except ValueError:
        fits = False
    if not fits:
        raise Misfit(f"parameters of shape {common} do not broadcast to size {tuple(size)}")
    return size


def _negative_log(op: Operation, u: Value) -> Value:
    return -op.emit("Log", u)


def _power(op: Operation, u: Value, a: Value) -> Value:
    return u ** op.emit("Reciprocal", a)


def _gumbel(op: Operation, u: Value, loc: Value, scale: Value) -> Value:
    return _negative_log(op, _negative_log(op, u)) * scale + loc


def _logistic(op: Operation, u: Value, loc: Value, scale: Value) -> Value:
    return op.emit("Log", u / ((1 + 2.0**-26) - u)) * scale + loc


def _rayleigh(op: Operation, u: Value, scale: Value) -> Value:
    return op.emit("Sqrt", _negative_log(op, u) * 2) * scale


_INVERSE: dict[str, tuple[_Transform, tuple[str, ...], tuple[float, ...]]] = {
    "exponential": (lambda op, u, scale: _negative_log(op, u) * scale, ("scale",), (1.0,)),
    "gumbel": (_gumbel, ("loc", "scale"), ()),
    "logistic": (_logistic, ("loc", "scale"), ()),
    "pareto": (lambda op, u, a: op.emit("Reciprocal", _power(op, u, a)) - 1, ("a",), ()),
    "powerd": (_power, ("a",), ()),
    "rayleigh": (_rayleigh, ("scale",), (1.0,)),
    "weibull": (lambda op, u, a: _power(op, _negative_log(op, u), a), ("a",), ()),
}
"""By name: the transformation of a uniform draw, the parameters, and their defaults."""


def _by_inverse(name: str, op: Operation) -> Value:
    transform, names, defaults = _INVERSE[name]
    dtype, working = _types(op)
    values = _parameters(op, names, working, defaults)
    draw = _uniform_inside(op, _drawn_shape(op, values), working)
    return op.cast(transform(op, draw, *values), dtype)


for _name in _INVERSE:
    table.register(f"_npi_{_name}")(partial(_by_inverse, _name))


def _plain(name: str, appended: bool, op: Operation) -> Value:
    source, transform, defaults = _SIMPLE[name]
    dtype, working = _types(op)
    values = _parameters(op, [key for key, _ in defaults], working)
    shape = _drawn_shape(op, values, appended=appended)
    return op.cast(transform(op, _drawn(op, source, shape, working), *values), dtype)


for _name in ("uniform", "normal"):
    table.register(f"_npi_{_name}")(partial(_plain, _name, False))
    table.register(f"_npi_{_name}_n")(partial(_plain, _name, True))


@table.register("_npi_gamma")
def npi_gamma(op: Operation) -> Value:
    """Draw with the parameters ``shape`` and ``scale``."""
    dtype, working = _types(op)
    alpha, scale = _parameters(op, ("shape", "scale"), working)
    return op.cast(_standard_gamma(op, alpha, _drawn_shape(op, (alpha, scale))) * scale, dtype)


@table.register("_npi_bernoulli")
def bernoulli(op: Operation) -> Value:
    """Draw 1 with probability ``prob``, or that whose log odds are ``logit``."""
    dtype, working = _types(op)
    is_logit = op.bool("is_logit")
    (chance,) = _parameters(op, ("logit" if is_logit else "prob",), working)
    shape = _drawn_shape(op, (chance,))
    if is_logit:
        chance = op.emit("Sigmoid", chance)
    return op.cast(_drawn(op, "RandomUniform", shape, working) < chance, dtype)


def _sizes(op: Operation, name: str = "size") -> tuple[int, ...]:
    sizes = op.ints(name, ()) if op.attr(name, "None") != "None" else ()
    if min(sizes, default=0) < 0:
        op.invalid("is negative", name)
    return sizes


@table.register("_npi_random_randint")
def npi_randint(op: Operation) -> Value:
    """Draw an array of ``shape`` uniformly from the integers ``low`` .. ``high`` - 1."""
    double = np.dtype(np.float64)
    return _whole_numbers(op, _drawn(op, "RandomUniform", _sizes(op, "shape"), double))


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
        return op.emit("Expand", op.constant(0, np.int64), sizes)
    if op.bool("replace", True):
        places = _with_replacement(op, total, count, logarithms)
    else:
        if count > total:
            op.invalid(f"is more than the {total} places without replacement", "size")
        scores = _uniform_inside(op, [total], _FLOAT32)
        if logarithms is not None:
            scores = logarithms - op.emit("Log", _negative_log(op, scores))
        places = op.emit("TopK", scores, [count], axis=0, sorted=1, outputs=2)[1]
    return op.emit("Reshape", places, sizes)


def _with_replacement(op: Operation, total: int, count: int, logarithms: Value | None) -> Value:
    if logarithms is None:
        uniform = _drawn(op, "RandomUniform", [count], np.dtype(np.float64))
        return op.cast(op.emit("Floor", uniform * total), np.int64)
    row = op.emit("Unsqueeze", logarithms, [0])
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
        return op.emit("Expand", op.constant(0, np.int64), [*sizes, categories])
    logarithms = op.emit("Expand", op.emit("Log", chances), [rows, categories])
    code = np.dtype(np.int64)
    places = op.emit("Multinomial", logarithms, sample_size=draws, dtype=code)
    ones = op.emit("Expand", op.constant(1, code), [rows, draws])
    counts = op.emit("Expand", op.constant(0, code), [rows, categories])
    counts = op.emit("ScatterElements", counts, places, ones, axis=1, reduction="add")
    return op.emit("Reshape", counts, [*sizes, categories])
