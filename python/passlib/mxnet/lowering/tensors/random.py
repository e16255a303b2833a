"""Random numbers with MXNet's distributions, from another generator.

Results therefore agree with MXNet's in distribution only. Every run draws anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import reshaped
from passlib.mxnet.lowering.real_arithmetic import element_type
from passlib.mxnet.lowering.table import table

_FLOAT32 = np.dtype(np.float32)


def _uniform(op: Operation, dtype: np.dtype) -> Value:
    """Draw an array of the attribute ``shape`` uniformly from [0, 1)."""
    return op.emit("RandomUniform", shape=_shape(op), dtype=dtype)


def _shape(op: Operation) -> list[int]:
    shape = op.ints("shape", (1,))
    if not shape or 0 in shape:
        op.unsupported("leaves a size to be inferred from other nodes", "shape")
    return list(shape)


def _working(op: Operation) -> tuple[np.dtype, np.dtype]:
    """Return the element type of the result, and the type to draw in."""
    dtype = element_type(op, np.float32)
    return dtype, np.dtype(np.float64) if dtype == np.float64 else _FLOAT32


def _stretched(op: Operation, value: Value, scale: Value, shift: Value) -> Value:
    return value * scale + shift


def _from_uniform(op: Operation, draw: Value, low: Value, high: Value) -> Value:
    return _stretched(op, draw, high - low, low)


def _from_exponential(op: Operation, draw: Value, rate: Value) -> Value:
    """Apply the inverse distribution function; 1 - u is never 0."""
    rest = 1 - draw
    return -op.emit("Log", rest) / rate


def _from_normal(op: Operation, draw: Value, mean: Value, deviation: Value) -> Value:
    return _stretched(op, draw, deviation, mean)


_DISTRIBUTIONS: dict[str, tuple[str, Callable[..., Value], tuple[tuple[str, float], ...]]] = {
    "uniform": ("RandomUniform", _from_uniform, (("low", 0.0), ("high", 1.0))),
    "normal": ("RandomNormal", _from_normal, (("loc", 0.0), ("scale", 1.0))),
    "exponential": ("RandomUniform", _from_exponential, (("lam", 1.0),)),
}
"""By name: the ONNX operator that draws, the transformation, and the parameters with defaults."""


def _by_attributes(name: str, op: Operation) -> Value:
    """Draw with parameters and shape from attributes."""
    source, transform, parameters = _DISTRIBUTIONS[name]
    dtype, working = _working(op)
    draw = op.emit(source, shape=_shape(op), dtype=working)
    values = [op.constant(op.float(key, default), working) for key, default in parameters]
    return op.cast(transform(op, draw, *values), dtype)


def _like_input(name: str, op: Operation) -> Value:
    """Draw with parameters from attributes, shape and element type from the input."""
    source, transform, parameters = _DISTRIBUTIONS[name]
    data = op.inputs[0]
    draw = op.emit(source + "Like", op.cast(data, np.float32), dtype=_FLOAT32)
    values = [op.constant(op.float(key, default), np.float32) for key, default in parameters]
    return op.cast(transform(op, draw, *values), op.dtype_of(data))


def _by_inputs(name: str, op: Operation) -> Value:
    """Draw ``shape`` numbers for each element of the parameter arrays (s...): (s..., shape...)."""
    source, transform, _ = _DISTRIBUTIONS[name]
    dtype, working = _working(op)
    extra = op.ints("shape", ())
    sizes = op.shape_of(op.inputs[0])
    draw = op.emit(source, shape=[*sizes, *extra], dtype=working)
    values = [
        reshaped(op, op.cast(value, working), [*sizes, *[1] * len(extra)]) for value in op.inputs
    ]
    return op.cast(transform(op, draw, *values), dtype)


for _name in _DISTRIBUTIONS:
    _short = () if _name == "exponential" else (_name,)
    table.register(f"_random_{_name}", f"random_{_name}", *_short)(partial(_by_attributes, _name))
    table.register(f"_random_{_name}_like")(partial(_like_input, _name))
    table.register(f"_sample_{_name}", f"sample_{_name}")(partial(_by_inputs, _name))


@table.register("_random_randint", "random_randint")
def randint(op: Operation) -> Value:
    """Draw an array of ``shape`` uniformly from the integers ``low`` .. ``high`` - 1."""
    return whole_numbers(op, _uniform(op, np.dtype(np.float64)))


def whole_numbers(op: Operation, uniform: Value) -> Value:
    """Spread float64 draws from [0, 1) over the integers ``low`` .. ``high`` - 1."""
    low, high = op.int("low"), op.int("high")
    if not 0 < high - low <= 2**53:
        op.invalid("must be above low, by at most 2**53", "high")
    spread = uniform * (high - low)
    offset = op.cast(op.emit("Floor", spread), np.int64)
    dtype = element_type(op, np.int32)
    return op.cast(offset + low, dtype)


@table.register("_sample_multinomial", "sample_multinomial")
def multinomial(op: Operation) -> Value | tuple[Value, Value]:
    """Draw categories: probabilities (s..., k) to ``dtype`` indices (s..., shape...).

    ``get_prob`` adds the logarithms of their probabilities, in the type of the input.
    """
    data, extra = op.inputs[0], op.ints("shape", ())
    sizes = op.shape_of(data)
    count = int(np.prod(extra, dtype=np.int64))
    rows = reshaped(op, op.cast(data, np.float32), [-1, sizes[-1]])
    logarithms = op.emit("Log", rows)
    code = np.dtype(np.int64)
    drawn = op.emit("Multinomial", logarithms, sample_size=count, dtype=code)
    shape = (*sizes[:-1], *extra) or (1,)
    indices = op.cast(op.emit("Reshape", drawn, shape), element_type(op, np.int32))
    if not op.bool("get_prob", False):
        return indices
    chosen = op.emit("GatherElements", logarithms, drawn, axis=1)
    return indices, op.cast(op.emit("Reshape", chosen, shape), op.dtype_of(data))
