"""Parameters of distributions, from attributes or inputs, and uniform draws of their shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.real_arithmetic import element_type

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
        return op.emit("Expand", op.constant(0, dtype), vector(op, *shape))
    line = op.emit(onnx_operator, shape=[count], dtype=dtype)
    return op.emit("Reshape", line, vector(op, *shape))


def uniform_inside(op: Operation, shape: Sequence[int], dtype: np.dtype) -> Value:
    """Draw uniformly between 0 and 1, never 0 itself: logarithms stay finite."""
    uniform = drawn(op, "RandomUniform", shape, dtype)
    return op.emit("Max", uniform, op.constant(_LEAST, dtype))
