"""Linear resizing of bytes in OpenCV's fixed point, which MXNet uses.

Weights have 11 bits. A row is weighted exactly; between two rows, the products lose 4 bits before
the multiplication and 16 after it, and the sum is rounded to the last two.
"""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.misfit import Misfit

_ONE = 2048
"""The weight 1."""


def resized_bytes(op: Operation, data: Value, height: int, width: int) -> Value:
    """Resize images (..., H, W, C) of uint8, whose H and W are known."""
    rows, columns = op.shape_of(data, least=3)[-3:-1]
    if 0 in (rows, columns):
        raise Misfit("an image without rows or columns has no other size")
    op.affordable(height + width)
    (left, right), shares = _neighbours(columns, width)
    # Outside of the image, a column has one neighbour; a row keeps two shares of the same one.
    outside = (left == right)[:, None]
    shares = np.where(outside, np.array([_ONE, 0]), shares)
    wide = _weighted(op, op.cast(data, np.int32), (left, right), shares, -2)
    (above, below), shares = _neighbours(rows, height)
    low_bits = op.constant(16, np.int32)
    short = [
        op.emit("Div", op.emit("Gather", part, op.constant(places, np.int64), axis=-3), low_bits)
        for part, places in ((wide, above), (wide, below))
    ]
    total = op.constant(2, np.int32)
    for part, share in zip(short, shares.T, strict=True):
        weight = op.constant(share.reshape(-1, 1, 1), np.int32)
        product = op.emit("Div", op.emit("Mul", part, weight), op.constant(2**16, np.int32))
        total = op.emit("Add", product, total)
    return op.cast(op.emit("Div", total, op.constant(4, np.int32)), np.uint8)


def _weighted(
    op: Operation, data: Value, places: tuple[np.ndarray, ...], shares: np.ndarray, axis: int
) -> Value:
    first, second = (
        op.emit(
            "Mul",
            op.emit("Gather", data, op.constant(place, np.int64), axis=axis),
            op.constant(share.reshape(-1, 1), np.int32),
        )
        for place, share in zip(places, shares.T, strict=True)
    )
    return op.emit("Add", first, second)


def _neighbours(size: int, wanted: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the two places that each of ``wanted`` places lies between, and their shares."""
    scale = 1.0 / (wanted / size)
    position = ((np.arange(wanted) + 0.5) * scale - 0.5).astype(np.float32)
    before = np.floor(position)
    share = position - before
    weights = np.stack([np.float32(1) - share, share], axis=1) * np.float32(_ONE)
    start = before.astype(np.int64)
    places = (np.clip(start, 0, size - 1), np.clip(start + 1, 0, size - 1))
    return places, np.rint(weights).astype(np.int32)
