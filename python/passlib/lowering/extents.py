"""Sizes of axes as ONNX values: constants if known, computed at run time if not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering.misfit import Misfit
from passlib.lowering.operation import Operation
from passlib.lowering.types import Value, shape_text

LAST = np.iinfo(np.int64).max
"""As the end of a slice: up to the end of the axis, whatever its size."""


def vector(op: Operation, *numbers: int) -> Value:
    """Add an int64 constant of shape (n,): axes, starts, shapes."""
    most = max(numbers, key=abs, default=0)
    if not ~LAST <= most <= LAST:
        raise Misfit(f"{most} elements exceed what 64 bits count")
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
    if len(parts) == 1:
        return parts[0]
    constants = [part.constant for part in parts]
    known = [constant for constant in constants if constant is not None]
    if len(known) == len(parts):
        joined: np.ndarray = np.concatenate(known) if known else np.zeros(0, np.int64)
        return op.constant(joined)
    return op.emit("Concat", *parts, axis=0)


def gathered_shape(op: Operation, value: Value, axes: Sequence[int]) -> Value:
    """Return the sizes of several axes, counted from the front, as a value of shape (n,)."""
    return concatenated(op, [extent(op, value, axis) for axis in axes])


def places(op: Operation, value: Value, axis: int) -> Value:
    """Return 0, 1, 2, ... up to the size of an axis, int64 of shape (size,)."""
    size = value.shape[axis] if value.shape is not None else None
    if size is not None:
        op.affordable(size)
        return vector(op, *range(size))
    count = op.emit("Squeeze", extent(op, value, axis), vector(op, 0))
    return op.emit("Range", op.constant(0, np.int64), count, op.constant(1, np.int64))


def flattened(op: Operation, value: Value) -> Value:
    """Flatten to one axis."""
    return op.emit("Reshape", value, vector(op, -1))


def reshaped_to(op: Operation, value: Value, sizes: Sequence[Value]) -> Value:
    """Reshape to sizes given as vectors, of which some are computed at run time."""
    result = op.emit("Reshape", value, concatenated(op, sizes), allowzero=1)
    shape: list[int | None] = []
    for part in sizes:
        if part.constant is not None:
            shape += [None if size < 0 else int(size) for size in part.constant]
        elif part.shape is not None and part.shape[0] is not None:
            shape += [None] * part.shape[0]
        else:
            return result
    result.shape = tuple(shape)
    return result


def scaled(op: Operation, size: Value, factor: int, divisor: int = 1) -> Value:
    """Multiply a size (1,) by a factor, and divide by a divisor without remainder."""
    if size.constant is not None:
        return vector(op, int(size.constant[0]) * factor // divisor)
    size = op.emit("Mul", size, vector(op, factor)) if factor != 1 else size
    return op.emit("Div", size, vector(op, divisor)) if divisor != 1 else size


def reshaped_like(op: Operation, value: Value, like: Value) -> Value:
    """Reshape to the shape of another value."""
    shape = gathered_shape(op, like, range(op.rank_of(like)))
    result = op.emit("Reshape", value, shape, allowzero=1)
    result.shape = like.shape
    return result


def reshaped(op: Operation, value: Value, dims: Sequence[int | Sequence[int]]) -> Value:
    """Reshape to sizes that are numbers or products of axes of ``value``.

    Raises `Misfit` if the sizes make more or fewer elements; `UnsupportedError` if the rank of
    ``value`` is unknown.

    Parameters
    ----------
    dims : sequence of int or of sequence of int
        A number of at least 0 is a size, -1 (once) the remaining size; a sequence lists axes of
        ``value`` whose sizes are multiplied.
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
    _require_equal_counts(value, sizes)
    if None in sizes and 0 not in sizes:
        # For ONNX a 0 is the size of the same axis of the data.
        copied = {
            i
            for i, dim in enumerate(dims)
            if sizes[i] is None and not isinstance(dim, int) and tuple(dim) == (i,)
        }
        rest = [i for i, size in enumerate(sizes) if size in (None, -1) and i not in copied]
        if len(rest) <= 1:
            wanted = [0 if i in copied else size or -1 for i, size in enumerate(sizes)]
            others = [size for axis, size in enumerate(shape) if axis not in copied]
            if None not in others:
                # The rest as a number: -1 would be ambiguous where a copied axis has no elements.
                count = math.prod(size for size in others if size is not None)
                left = count // math.prod(size for size in wanted if size > 0)
                wanted = [(left or -1) if size == -1 else size for size in wanted]
            if -1 not in wanted:
                result = op.emit("Reshape", value, vector(op, *wanted))
                result.shape = tuple(size or shape[i] for i, size in enumerate(wanted))
                return result
            if -1 in sizes or not copied:
                return op.emit("Reshape", value, vector(op, *wanted))
    if sizes.count(None) == 1 and -1 not in sizes:
        sizes[sizes.index(None)] = -1
    if None not in sizes:
        return op.emit("Reshape", value, vector(op, *(size or 0 for size in sizes)), allowzero=1)
    parts = []
    for dim, size in zip(dims, sizes, strict=True):
        if size is not None:
            parts.append(vector(op, size))
        elif not isinstance(dim, int):
            known_later = gathered_shape(op, value, dim)
            several = len(dim) > 1
            parts.append(op.emit("ReduceProd", known_later, keepdims=1) if several else known_later)
    return reshaped_to(op, value, parts)


def _require_equal_counts(value: Value, sizes: Sequence[int | None]) -> None:
    """Check that a known shape has as many elements as sizes in which -1 is the rest."""
    shape = value.shape or ()
    if None in shape or None in sizes:
        return
    count = math.prod(size for size in shape if size is not None)
    wanted = math.prod(size for size in sizes if size is not None and size >= 0)
    if count % wanted if -1 in sizes and wanted else count != wanted:
        raise Misfit(f"{count} elements do not make the shape {shape_text(tuple(sizes))}")
