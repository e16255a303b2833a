"""Pooling over windows and over whole images."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.families.dlprim.lowering.common import floats, options_of, size_of
from passlib.families.dlprim.lowering.table import table
from passlib.families.dlprim.shape_rules import pooled
from passlib.lowering import Operation, Value
from passlib.lowering.padding import pad_spatial


@table.register("GlobalPooling")
def global_pooling(op: Operation) -> Value:
    """Reduce each channel of (N, C, H, W) to its maximum or average, (N, C, 1, 1)."""
    floats(op, op.inputs[0])
    mode = options_of(op)["mode"]
    return op.emit("GlobalMaxPool" if mode == "max" else "GlobalAveragePool", op.inputs[0])


@table.register("Pooling2D")
def pooling(op: Operation) -> Value:
    """Reduce windows of (N, C, H, W) to their maximum or average.

    With ``ceil_mode``, windows may extend beyond the trailing padding. An average divides by the
    part of the window inside the input or, with ``count_include_pad``, inside the padded input.
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    sizes = [size_of(op, data, axis) for axis in (2, 3)]
    counts = [pooled(options, size, axis) for axis, size in enumerate(sizes)]
    if min(counts) < 1:
        op.unsupported(f"the kernel is larger than the padded input {sizes}", "kernel")
    begins = list(options["pad"])
    ends = [
        max((count - 1) * stride + kernel - size - pad, 0)
        for count, stride, kernel, size, pad in zip(
            counts, options["stride"], options["kernel"], sizes, begins, strict=True
        )
    ]
    if options["mode"] == "max":
        return _maximum(op, data, options, begins + ends)
    return _average(op, data, options, begins + ends, counts)


def _maximum(op: Operation, data: Value, options: dict[str, Any], pads: list[int]) -> Value:
    if _too_wide(options, pads):
        lowest = float(np.finfo(op.dtype_of(data)).min)
        data, pads = pad_spatial(op, data, pads, lowest), [0] * 4
    kernel, stride = _window(options)
    return op.emit("MaxPool", data, pads=pads, kernel_shape=kernel, strides=stride)


def _average(
    op: Operation, data: Value, options: dict[str, Any], pads: list[int], counts: list[int]
) -> Value:
    padded = options["count_include_pad"]
    symmetric = pads[:2] == pads[2:]
    if not _too_wide(options, pads) and (symmetric or not padded):
        return _mean(op, data, options, pads, padded)
    shares = _shares(op, data, options, counts)
    if _too_wide(options, pads):
        data, pads = pad_spatial(op, data, pads, 0), [0] * 4
    mean = _mean(op, data, options, pads, True)
    return op.emit("Mul", mean, op.constant_like(shares, mean))


def _shares(
    op: Operation, data: Value, options: dict[str, Any], counts: list[int]
) -> np.ndarray[Any, Any]:
    """Return the ratio of window size to the number of elements averaged, for each position."""
    op.affordable(*counts)
    shares = np.ones((1, 1))
    for axis in (0, 1):
        size = size_of(op, data, axis + 2)
        pad, kernel = options["pad"][axis], options["kernel"][axis]
        start = np.arange(counts[axis]) * options["stride"][axis] - pad
        low, high = (-pad, size + pad) if options["count_include_pad"] else (0, size)
        valid = np.minimum(start + kernel, high) - np.maximum(start, low)
        along = kernel / np.maximum(valid, 1)
        shares = shares * (along[:, None] if axis == 0 else along[None, :])
    return shares


def _too_wide(options: dict[str, Any], pads: list[int]) -> bool:
    """Whether some padding is as wide as the window, which ONNX Runtime rejects."""
    return any(pad >= kernel for pad, kernel in zip(pads, options["kernel"] * 2, strict=True))


def _mean(
    op: Operation, data: Value, options: dict[str, Any], pads: list[int], padded: bool
) -> Value:
    kernel, stride = _window(options)
    return op.emit(
        "AveragePool",
        data,
        pads=pads,
        kernel_shape=kernel,
        strides=stride,
        count_include_pad=int(padded),
    )


def _window(options: dict[str, Any]) -> tuple[list[int], list[int]]:
    return list(options["kernel"]), list(options["stride"])
