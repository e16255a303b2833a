"""Padding of data whose axes are batch, channels and then the spatial ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering.operation import Operation
from passlib.lowering.types import Value

__all__ = ["pad_spatial"]


def pad_spatial(op: Operation, data: Value, pads: Sequence[int], fill: float) -> Value:
    """Pad the spatial axes by concatenation, for a pooling that follows.

    ONNX Runtime merges a Pad with zeros into the pooling after it, and then refuses pads that are
    as large as the kernel.

    Parameters
    ----------
    op : Operation
    data : Value
        Its shape must be known.
    pads : sequence of int
        As in ONNX: the start of each spatial axis, then the end of each.
    fill : float

    Raises
    ------
    UnsupportedError
        The shape is unknown, or the padding unreasonably large.
    """
    rank = len(pads) // 2
    for axis in range(rank):
        shape = list(op.shape_of(data))
        parts = [data]
        for place, count in ((0, pads[axis]), (2, pads[rank + axis])):
            if count:
                shape[axis + 2] = count
                op.affordable(*shape)
                parts.insert(place, op.constant_like(np.full(shape, fill), data))
        data = op.emit("Concat", *parts, axis=axis + 2) if len(parts) > 1 else data
    return data
