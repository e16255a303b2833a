"""Pooling over windows of height and width, and global pooling."""

from __future__ import annotations

import numpy as np

from passlib.families.nnvm.lowering.layouts import (
    DATA,
    axis_order,
    pads,
    pair,
    require_room,
    transposed,
    uses_order,
)
from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.padding import pad_spatial


class _Window:
    """The attributes of a pooling; padding in the order top, left, bottom, right."""

    def __init__(self, op: Operation, data: Value) -> None:
        self.kernel = pair(op, "pool_size")
        self.strides = pair(op, "strides", 1)
        self.pads = pads(op)
        if min(*self.kernel, *self.strides) < 1 or min(self.pads) < 0:
            op.unsupported("windows and strides must be at least 1, padding at least 0")
        require_room(op, data, self.kernel, [1, 1], self.pads)
        self.beyond = [0, 0]
        if op.bool("ceil_mode", False):
            sizes = op.shape_of(data)[2:]
            self.beyond = [
                -(size + self.pads[i] + self.pads[i + 2] - self.kernel[i]) % self.strides[i]
                for i, size in enumerate(sizes)
            ]
        self.pads[2] += self.beyond[0]
        self.pads[3] += self.beyond[1]

    @property
    def is_wide(self) -> bool:
        """Whether a window may be entirely in padding, which ONNX does not allow."""
        return any(pad >= self.kernel[i % 2] for i, pad in enumerate(self.pads))


@table.register("max_pool2d")
def max_pooling(op: Operation) -> Value:
    """Compute the maximum of each window of ``pool_size``.

    ``data`` (N, C, H, W) or by ``layout``. A size becomes
    ``(size + padding - pool_size) // strides + 1``, rounded up with ``ceil_mode``.
    """
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
    window = _Window(op, data)
    padding = window.pads
    if window.is_wide:
        dtype = op.dtype_of(data)
        lowest = np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min
        data, padding = pad_spatial(op, data, padding, float(lowest)), [0] * 4
    result = op.emit(
        "MaxPool", data, kernel_shape=window.kernel, strides=window.strides, pads=padding
    )
    return transposed(op, result, DATA, layout)


@table.register("avg_pool2d")
def average_pooling(op: Operation) -> Value:
    """Compute the mean of each window of ``pool_size``; sizes as in `max_pooling`.

    It is over the elements inside the input, or over the whole window with
    ``count_include_pad``.
    """
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
    window = _Window(op, data)
    include = op.bool("count_include_pad", False)
    padding, shares = window.pads, None
    if include and any(padding):
        data, padding = pad_spatial(op, data, padding, 0.0), [0] * 4
    elif window.is_wide:
        shares = op.constant_like(_shares(op, window, data), data)
        data, padding = pad_spatial(op, data, padding, 0.0), [0] * 4
    result = op.emit(
        "AveragePool", data, kernel_shape=window.kernel, strides=window.strides, pads=padding
    )
    if shares is not None:
        result = op.emit("Mul", result, shares)
    return transposed(op, result, DATA, layout)


@table.register("global_max_pool2d")
def global_max_pooling(op: Operation) -> Value:
    """Compute the maximum over height and width: (N, C, 1, 1), or axes by ``layout``."""
    return _global(op, "GlobalMaxPool")


@table.register("global_avg_pool2d")
def global_average_pooling(op: Operation) -> Value:
    """Compute the mean over height and width: (N, C, 1, 1), or axes by ``layout``."""
    return _global(op, "GlobalAveragePool")


def _global(op: Operation, operator: str) -> Value:
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
    return transposed(op, op.emit(operator, data), DATA, layout)


def _shares(op: Operation, window: _Window, data: Value) -> np.ndarray:
    """Return the factor for each window's mean, so that only elements of the input count."""
    counts = []
    for i, size in enumerate(op.shape_of(data)[2:]):
        total = size + window.pads[i] + window.pads[i + 2]
        starts = np.arange(0, total - window.kernel[i] + 1, window.strides[i]) - window.pads[i]
        inside = np.minimum(starts + window.kernel[i], size) - np.maximum(starts, 0)
        counts.append(np.maximum(inside, 0))
    op.affordable(len(counts[0]), len(counts[1]))
    elements = np.maximum(np.outer(*counts), 1)
    return np.asarray(np.prod(window.kernel) / elements)
