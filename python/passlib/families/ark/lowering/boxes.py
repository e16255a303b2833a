"""Boxes of a buffer: reads are slices, writes make new values of the whole buffer."""

from __future__ import annotations

import math

import numpy as np

from passlib.families.ark.lowering.table import TABLE, box_of, reshape, size_of, type_of
from passlib.families.ark.tensors import Box
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("Zeros")
def zeros(operation: Operation) -> Value:
    """Return zeros, the content of memory before any write."""
    shape = operation.constant(box_of(operation).shape, np.int64)
    return operation.emit("Expand", operation.constant(0, type_of(operation)), shape)


@TABLE.register("Read")
def read(operation: Operation) -> Value:
    """Return a box of the dense array at the start of a buffer."""
    box = box_of(operation)
    array = _array(operation, operation.inputs[0], box)
    return _cut(operation, array, box.offsets, _ends(box), range(len(box.shape)))


@TABLE.register("Write")
def write(operation: Operation) -> Value:
    """Return the buffer with a box replaced; a buffer without a value is zero elsewhere."""
    box = box_of(operation)
    value = reshape(operation, operation.inputs[0], box.shape)
    size = size_of(operation)
    if len(operation.inputs) == 1:
        operation.affordable(size)
        before = list(box.offsets)
        after = [t - e for t, e in zip(box.strides, _ends(box), strict=True)]
        array = operation.emit("Pad", value, operation.constant([*before, *after], np.int64))
        flat = reshape(operation, array, (box.extent,))
        if size == box.extent:
            return flat
        return operation.emit("Pad", flat, operation.constant([0, size - box.extent], np.int64))
    old = operation.inputs[1]
    array = _replace(operation, _array(operation, old, box), value, box, 0)
    flat = reshape(operation, array, (box.extent,))
    if size == box.extent:
        return flat
    whole = reshape(operation, old, (math.prod(operation.shape_of(old)),))
    rest = _cut(operation, whole, (box.extent,), (size,), range(1))
    return operation.emit("Concat", flat, rest, axis=0)


def _array(operation: Operation, buffer: Value, box: Box) -> Value:
    """Return the array that contains a box."""
    size = math.prod(operation.shape_of(buffer))
    if size != box.extent:
        flat = reshape(operation, buffer, (size,))
        buffer = _cut(operation, flat, (0,), (box.extent,), range(1))
    return reshape(operation, buffer, box.strides)


def _replace(operation: Operation, array: Value, value: Value, box: Box, axis: int) -> Value:
    """Replace a box of an array that has the box's sizes in the dimensions before ``axis``."""
    while axis < len(box.shape) and box.shape[axis] == box.strides[axis]:
        axis += 1
    if axis == len(box.shape):
        return value
    start, end, extent = box.offsets[axis], _ends(box)[axis], box.strides[axis]
    middle = _cut(operation, array, (start,), (end,), (axis,))
    parts = [_replace(operation, middle, value, box, axis + 1)]
    if start > 0:
        parts.insert(0, _cut(operation, array, (0,), (start,), (axis,)))
    if end < extent:
        parts.append(_cut(operation, array, (end,), (extent,), (axis,)))
    return operation.emit("Concat", *parts, axis=axis)


def _cut(
    operation: Operation,
    value: Value,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: range | tuple[int, ...],
) -> Value:
    """Slice along those axes that the slice shortens."""
    shape = operation.shape_of(value)
    wanted = [
        (start, end, axis)
        for start, end, axis in zip(starts, ends, axes, strict=True)
        if (start, end) != (0, shape[axis])
    ]
    if not wanted:
        return value
    rows = (operation.constant(row, np.int64) for row in zip(*wanted, strict=True))
    return operation.emit("Slice", value, *rows)


def _ends(box: Box) -> tuple[int, ...]:
    return tuple(o + s for o, s in zip(box.offsets, box.shape, strict=True))
