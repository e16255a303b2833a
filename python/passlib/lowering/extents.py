"""Sizes of axes as ONNX values, constants if known, and operations that need them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering.operation import Operation
from passlib.lowering.types import Misfit, Value, shape_text

LAST = np.iinfo(np.int64).max
"""As the end of a slice: up to the end of the axis, whatever its size."""


def vector(op: Operation, *numbers: int) -> Value:
    """Add an int64 constant of shape (n,): axes, starts, shapes."""
    return op.vector(*numbers)


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

    Of ``dims``, a number of at least 0 is a size, -1 (once) the remaining size; a sequence lists
    axes of ``value`` whose sizes are multiplied. Raises `Misfit` if the sizes make more or fewer
    elements; `UnsupportedError` if the rank of ``value`` is unknown.
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


def dot(op: Operation) -> Value:
    """Sum over the last axis of the first input and the first axis of the second.

    Attribute ``transpose_a`` sums over the first axis of the first input instead, ``transpose_b``
    over the last of the second; a vector stays as it is next to a matrix. Two vectors result in
    shape (1,). Raises `GraphError` if one of two vectors would be transposed.
    """
    left, right = op.operands(2)
    is_row, is_column = op.rank_of(left) == 1, op.rank_of(right) == 1
    for flag in ("transpose_a", "transpose_b"):
        if is_row and is_column and op.bool(flag, False):
            op.invalid("a vector has no transpose", flag)
    turns = (
        not is_row and op.bool("transpose_a", False),
        not is_column and op.bool("transpose_b", False),
    )
    # Vectors become matrices: ONNX Runtime 1.31 computes the product of a transposed matrix and
    # a vector wrongly where it fuses the two.
    if is_row:
        left = op.emit("Unsqueeze", left, vector(op, 0))
    if is_column:
        right = op.emit("Unsqueeze", right, vector(op, 1))
    product = _contracted(op, left, right, turns)
    if is_column:
        return op.emit("Squeeze", product, vector(op, -1))
    return op.emit("Squeeze", product, vector(op, 0)) if is_row else product


def _contracted(op: Operation, left: Value, right: Value, turns: tuple[bool, bool]) -> Value:
    for value in (left, right):
        op.require_rank(value, least=2)
    rank, other_rank = op.rank_of(left), op.rank_of(right)
    if turns[0]:
        left = op.emit("Transpose", left, perm=[*range(1, rank), 0])
    if turns[1]:
        right = op.emit("Transpose", right, perm=[other_rank - 1, *range(other_rank - 1)])
    if other_rank == 2:
        return op.emit("MatMul", left, right)
    flat = reshaped(op, right, [(0,), tuple(range(1, other_rank))])
    product = op.emit("MatMul", left, flat)
    sizes = [extent(op, left, axis) for axis in range(op.rank_of(left) - 1)]
    sizes += [extent(op, right, axis) for axis in range(1, other_rank)]
    return reshaped_to(op, product, sizes)


def pad_spatial(op: Operation, data: Value, pads: Sequence[int], fill: float) -> Value:
    """Pad the spatial axes by concatenation, for a pooling that follows.

    ONNX Runtime merges a Pad with zeros into the pooling after it, and then refuses pads that are
    as large as the kernel. ``pads`` has ONNX's order; the sizes of ``data`` may be open, its rank
    not. Raises `UnsupportedError` if the rank is unknown, or the padding unreasonably large.
    """
    rank = len(pads) // 2
    for axis in range(2, rank + 2):
        parts = [data]
        for place, count in ((0, pads[axis - 2]), (2, pads[rank + axis - 2])):
            if count:
                parts.insert(place, _block(op, data, axis, count, fill))
        data = op.emit("Concat", *parts, axis=axis) if len(parts) > 1 else data
    return data


def _block(op: Operation, data: Value, axis: int, count: int, fill: float) -> Value:
    """Add an array like ``data`` with ``count`` elements along an axis, all of them ``fill``."""
    axes = range(op.rank_of(data))
    sizes = [count if i == axis else size for i, size in enumerate(data.shape or ())]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        op.affordable(*known)
        return op.constant_like(np.full(known, fill), data)
    shape = [vector(op, count) if i == axis else extent(op, data, i) for i in axes]
    return op.emit("Expand", op.constant_like(fill, data), concatenated(op, shape))
