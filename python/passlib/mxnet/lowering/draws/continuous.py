"""Draws from continuous distributions, most of them by the inverse distribution function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.real_arithmetic import element_type
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.random import whole_numbers

_SINGLE = np.dtype(np.float32)
_LEAST = 2.0**-26
"""Half of the smallest step of a uniform draw in single precision."""


def types_of(op: Operation, default: type[np.generic] = np.float32) -> tuple[np.dtype, np.dtype]:
    """Return the element type of the result, and the type to compute in."""
    dtype = element_type(op, default)
    return dtype, np.dtype(np.float64) if dtype == np.float64 else _SINGLE


def parameters(
    op: Operation, names: Sequence[str], working: np.dtype, defaults: Sequence[float | None] = ()
) -> list[Value]:
    """Return each parameter: the attribute's number, or the next input where it is ``None``.

    Raises
    ------
    Misfit
        There are fewer inputs, or more.
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


def drawn_shape(op: Operation, values: Sequence[Value], *, appended: bool = False) -> list[int]:
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


def drawn(op: Operation, onnx_operator: str, shape: Sequence[int], dtype: np.dtype) -> Value:
    """Draw an array of a shape, which may be empty or without axes."""
    count = math.prod(shape)
    if not count:
        return op.emit("Expand", op.constant(0, dtype), shape)
    line = op.emit(onnx_operator, shape=[count], dtype=dtype)
    return op.emit("Reshape", line, shape)


def uniform_inside(op: Operation, shape: Sequence[int], dtype: np.dtype) -> Value:
    """Draw uniformly between 0 and 1, never 0 itself: logarithms stay finite."""
    uniform = drawn(op, "RandomUniform", shape, dtype)
    return op.emit("Max", uniform, op.constant(_LEAST, dtype))


__all__: list[str] = []

Transform = Callable[..., Value]


def _scaled(op: Operation, standard: Value, loc: Value, scale: Value) -> Value:
    return standard * scale + loc


def _from_uniform(op: Operation, u: Value, low: Value, high: Value) -> Value:
    return _scaled(op, u, low, high - low)


def _negative_log(op: Operation, u: Value) -> Value:
    return -op.emit("Log", u)


def _gumbel(op: Operation, u: Value, loc: Value, scale: Value) -> Value:
    return _scaled(op, _negative_log(op, _negative_log(op, u)), loc, scale)


def _logistic(op: Operation, u: Value, loc: Value, scale: Value) -> Value:
    odds = u / (1 + 2.0**-26 - u)
    return _scaled(op, op.emit("Log", odds), loc, scale)


def _exponential(op: Operation, u: Value, scale: Value) -> Value:
    return _negative_log(op, u) * scale


def _rayleigh(op: Operation, u: Value, scale: Value) -> Value:
    twice = _negative_log(op, u) * 2
    return op.emit("Sqrt", twice) * scale


def _power(op: Operation, u: Value, a: Value) -> Value:
    return u ** op.emit("Reciprocal", a)


def _pareto(op: Operation, u: Value, a: Value) -> Value:
    return op.emit("Reciprocal", _power(op, u, a)) - 1


def _weibull(op: Operation, u: Value, a: Value) -> Value:
    return _power(op, _negative_log(op, u), a)


_DISTRIBUTIONS: dict[str, tuple[Transform, tuple[str, ...], tuple[float, ...]]] = {
    "exponential": (_exponential, ("scale",), (1.0,)),
    "gumbel": (_gumbel, ("loc", "scale"), ()),
    "logistic": (_logistic, ("loc", "scale"), ()),
    "pareto": (_pareto, ("a",), ()),
    "powerd": (_power, ("a",), ()),
    "rayleigh": (_rayleigh, ("scale",), (1.0,)),
    "weibull": (_weibull, ("a",), ()),
}
"""By name: the transformation of a uniform draw, the parameters, and their defaults."""


def _by_inverse(name: str, op: Operation) -> Value:
    transform, names, defaults = _DISTRIBUTIONS[name]
    dtype, working = types_of(op)
    values = parameters(op, names, working, defaults)
    draw = uniform_inside(op, drawn_shape(op, values), working)
    return op.cast(transform(op, draw, *values), dtype)


for _name in _DISTRIBUTIONS:
    table.register(f"_npi_{_name}")(partial(_by_inverse, _name))


_PLAIN: dict[str, tuple[str, Transform, tuple[str, str]]] = {
    "uniform": ("RandomUniform", _from_uniform, ("low", "high")),
    "normal": ("RandomNormal", _scaled, ("loc", "scale")),
}
"""By name: the ONNX operator that draws, the transformation, the parameters."""


def _plain(name: str, appended: bool, op: Operation) -> Value:
    source, transform, names = _PLAIN[name]
    dtype, working = types_of(op)
    values = parameters(op, names, working)
    shape = drawn_shape(op, values, appended=appended)
    return op.cast(transform(op, drawn(op, source, shape, working), *values), dtype)


for _name in _PLAIN:
    table.register(f"_npi_{_name}")(partial(_plain, _name, False))
    table.register(f"_npi_{_name}_n")(partial(_plain, _name, True))


_FLOAT32 = np.dtype(np.float32)


@table.register("_npi_bernoulli")
def bernoulli(op: Operation) -> Value:
    """Draw 1 with probability ``prob``, or that whose log odds are ``logit``."""
    dtype, working = types_of(op)
    is_logit = op.bool("is_logit")
    (chance,) = parameters(op, ("logit" if is_logit else "prob",), working)
    shape = drawn_shape(op, (chance,))
    if is_logit:
        chance = op.emit("Sigmoid", chance)
    return op.cast(drawn(op, "RandomUniform", shape, working) < chance, dtype)


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
        return op.emit("Expand", op.constant(0, np.int64), sizes)
    if op.bool("replace", True):
        places = _with_replacement(op, total, count, logarithms)
    else:
        if count > total:
            op.invalid(f"is more than the {total} places without replacement", "size")
        scores = uniform_inside(op, [total], _FLOAT32)
        if logarithms is not None:
            noise = op.emit("Log", -op.emit("Log", scores))
            scores = logarithms - noise
        places = op.emit("TopK", scores, [count], axis=0, sorted=1, outputs=2)[1]
    return op.emit("Reshape", places, sizes)


def _with_replacement(op: Operation, total: int, count: int, logarithms: Value | None) -> Value:
    if logarithms is None:
        double = np.dtype(np.float64)
        spread = drawn(op, "RandomUniform", [count], double) * total
        return op.cast(op.emit("Floor", spread), np.int64)
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
