"""Sizes of axes as ONNX values: constants if known, computed at run time if not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering.operation import Operation
from passlib.lowering.types import Value

__all__ = [
    "LAST",
    "concatenated",
    "extent",
    "flattened",
    "gathered_shape",
    "numbers_or_none",
    "reshaped",
    "vector",
]

LAST = np.iinfo(np.int64).max
"""As the end of a slice: up to the end of the axis, whatever its size."""


def vector(op: Operation, *numbers: int) -> Value:
    """Add an int64 constant of shape (n,): axes, starts, shapes."""
    return op.constant(np.asarray(numbers, np.int64))


def numbers_or_none(op: Operation, name: str) -> tuple[int, ...]:
    """Read a tuple of integers, empty if the attribute is absent or ``None``."""
    return () if op.attr(name, "None") == "None" else op.ints(name)


def extent(op: Operation, value: Value, axis: int) -> Value:
    """Return the size of an axis, counted from the front, as a value of shape (1,)."""
    size = value.shape[axis] if value.shape is not None else None
    if size is not None:
        return vector(op, size)
    return op.emit("Shape", value, start=axis, end=axis + 1)


def concatenated(op: Operation, parts: Sequence[Value]) -> Value:
    """Concatenate vectors; constants at once, so that type inference sees the result."""
    constants = [part.constant for part in parts]
    known = [constant for constant in constants if constant is not None]
    if len(known) == len(parts):
        joined: np.ndarray = np.concatenate(known) if known else np.zeros(0, np.int64)
        return op.constant(joined)
    return op.emit("Concat", *parts, axis=0)


def gathered_shape(op: Operation, value: Value, axes: Sequence[int]) -> Value:
    """Return the sizes of several axes, counted from the front, as a value of shape (n,)."""
    return concatenated(op, [extent(op, value, axis) for axis in axes])


def flattened(op: Operation, value: Value) -> Value:
    """Flatten to one axis."""
    return op.emit("Reshape", value, vector(op, -1))


def reshaped(op: Operation, value: Value, dims: Sequence[int | Sequence[int]]) -> Value:
    """Reshape to sizes that are numbers or products of axes of ``value``.

    Parameters
    ----------
    op : Operation
    value : Value
    dims : sequence of int or of sequence of int
        A number of at least 0 is a size, -1 (once) the remaining size; a sequence lists axes of
        ``value`` whose sizes are multiplied.

    Raises
    ------
    UnsupportedError
        The rank of ``value`` is unknown.
    """
    op.rank_of(value)
    shape = value.shape or ()
    sizes: list[int | None] = []
    for dim in dims:
        if isinstance(dim, int):
            sizes.append(dim)
            continue
        factors = [shape[axis] for axis in dim]
        known = [factor for factor in factors if factor is not None]
        sizes.append(math.prod(known) if len(known) == len(factors) else None)
    if sizes.count(None) == 1 and -1 not in sizes:
        sizes[sizes.index(None)] = -1
    if None not in sizes:
        return op.emit("Reshape", value, vector(op, *(size or 0 for size in sizes)), allowzero=1)
    parts = []
    for dim, size in zip(dims, sizes, strict=True):
        if size is not None:
            parts.append(vector(op, size))
        elif not isinstance(dim, int):
            factors_at_run_time = gathered_shape(op, value, dim)
            parts.append(op.emit("ReduceProd", factors_at_run_time, keepdims=1))
    return op.emit("Reshape", value, concatenated(op, parts))
