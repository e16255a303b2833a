"""Sampling of feature maps at arbitrary positions, by flat indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened


def column(op: Operation, rows: Value, index: int, rank: int) -> Value:
    """Return one column of regions (R, n) in the shape (R, 1, ...) of ``rank`` axes."""
    picked = op.emit("Gather", rows, op.constant(index, "int64"), axis=1)
    return op.emit("Reshape", picked, op.constant([-1] + [1] * (rank - 1), "int64"))


def rounded(op: Operation, value: Value) -> Value:
    """Round halves away from zero, as C's ``round`` does."""
    half = op.emit("Add", op.emit("Abs", value), op.constant_like(0.5, value))
    return op.emit("Mul", op.emit("Sign", value), op.emit("Floor", half))


def element(op: Operation, flat: Value, shape: Sequence[int], places: Sequence[Value]) -> Value:
    """Return elements of an array of ``shape``, given flat, at int64 indices that broadcast."""
    index = places[0]
    for size, place in zip(shape[1:], places[1:], strict=True):
        index = op.emit("Add", op.emit("Mul", index, op.constant(size, "int64")), place)
    return op.emit("Gather", flat, index, axis=0)


def bilinear(
    op: Operation, data: Value, image: Value, channel: Value, position: tuple[Value, Value]
) -> Value:
    """Interpolate (N, C, H, W) at rows and columns within 0 .. size - 1.

    ``image`` and ``channel`` are int64; all indices broadcast against each other.
    """
    shape = op.shape_of(data, 4)
    flat = flattened(op, data)
    places, weights = [], []
    for value, size in zip(position, shape[2:], strict=True):
        low = op.emit("Floor", value)
        share = op.emit("Sub", value, low)
        start = op.cast(low, np.int64)
        last = op.constant(size - 1, "int64")
        stop = op.emit("Min", op.emit("Add", start, op.constant(1, "int64")), last)
        places.append((start, stop))
        weights.append((op.emit("Sub", op.constant_like(1, share), share), share))
    total = None
    for y, height in zip(places[0], weights[0], strict=True):
        for x, width in zip(places[1], weights[1], strict=True):
            found = element(op, flat, shape, (image, channel, y, x))
            term = op.emit("Mul", found, op.emit("Mul", height, width))
            total = term if total is None else op.emit("Add", total, term)
    assert total is not None
    return total
