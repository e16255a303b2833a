"""Draws from continuous distributions, most of them by the inverse distribution function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.draws.parameters import (
    drawn,
    drawn_shape,
    parameters,
    types_of,
    uniform_inside,
)
from passlib.mxnet.lowering.table import table

__all__: list[str] = []

Transform = Callable[..., Value]


def _scaled(op: Operation, standard: Value, loc: Value, scale: Value) -> Value:
    return op.emit("Add", op.emit("Mul", standard, scale), loc)


def _from_uniform(op: Operation, u: Value, low: Value, high: Value) -> Value:
    return _scaled(op, u, low, op.emit("Sub", high, low))


def _negative_log(op: Operation, u: Value) -> Value:
    return op.emit("Neg", op.emit("Log", u))


def _gumbel(op: Operation, u: Value, loc: Value, scale: Value) -> Value:
    return _scaled(op, _negative_log(op, _negative_log(op, u)), loc, scale)


def _logistic(op: Operation, u: Value, loc: Value, scale: Value) -> Value:
    odds = op.emit("Div", u, op.emit("Sub", op.constant_like(1 + 2.0**-26, u), u))
    return _scaled(op, op.emit("Log", odds), loc, scale)


def _exponential(op: Operation, u: Value, scale: Value) -> Value:
    return op.emit("Mul", _negative_log(op, u), scale)


def _rayleigh(op: Operation, u: Value, scale: Value) -> Value:
    twice = op.emit("Mul", _negative_log(op, u), op.constant_like(2, u))
    return op.emit("Mul", op.emit("Sqrt", twice), scale)


def _power(op: Operation, u: Value, a: Value) -> Value:
    return op.emit("Pow", u, op.emit("Reciprocal", a))


def _pareto(op: Operation, u: Value, a: Value) -> Value:
    return op.emit("Sub", op.emit("Reciprocal", _power(op, u, a)), op.constant_like(1, u))


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
