"""Padding of data whose axes are batch, channels and then the spatial ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering.extents import concatenated, extent, vector
from passlib.lowering.operation import Operation
from passlib.lowering.types import Value


def pad_spatial(op: Operation, data: Value, pads: Sequence[int], fill: float) -> Value:
    """Pad the spatial axes by concatenation, for a pooling that follows.

    ONNX Runtime merges a Pad with zeros into the pooling after it, and then refuses pads that are
    as large as the kernel. Raises `UnsupportedError` if the rank is unknown, or the padding
    unreasonably large.

    Parameters
    ----------
    data : Value
        Of known rank; its sizes may be open.
    pads : sequence of int
        As in ONNX: the start of each spatial axis, then the end of each.
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
