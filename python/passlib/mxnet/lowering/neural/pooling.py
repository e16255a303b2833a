"""Pooling over windows, over all positions, and to a given output size."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import (
    concatenated,
    extent,
    gathered_shape,
    numbers_or_none,
    pad_spatial,
    places,
    vector,
)
from passlib.mxnet.lowering.neural.convolution import (
    Spatial,
    from_channels_first,
    layout,
    spatial,
    to_channels_first,
)
from passlib.mxnet.lowering.table import table

_GLOBAL = {"max": "GlobalMaxPool", "avg": "GlobalAveragePool"}


@table.register("Pooling", "_npx_pooling")
def pooling(op: Operation) -> Sequence[Value]:
    """Reduce windows to their maximum, average, sum or p-norm, over 1, 2 or 3 spatial axes.

    ``data`` (N, C, ...). With the convention ``valid`` a spatial size becomes
    ``(size + 2 * pad - kernel) // stride + 1``, with ``full`` the division rounds up and windows
    may extend beyond the end. An average with ``count_include_pad`` divides by the part of the
    window inside the padded input, without it by the part inside the input. A maximum has a
    hidden second output, its positions.
    """
    result = _pool(op, op.optional_int("p_value"), include_pad=_include_pad(op))
    why = "the positions of maxima are not provided"
    return result, op.declare(np.dtype(np.int32), result.shape, why)


@table.register("Pooling_v1")
def pooling_v1(op: Operation) -> Value:
    """Apply the older `pooling`, whose zero padding counts in maxima too.

    Averages divide by the size of the kernel, even if it extends beyond the end.
    """
    kind = op.string("pool_type", "max", choices=("max", "avg", "sum"))
    if op.bool("global_pool", False):
        return _global_pool(op, kind, None)
    window = spatial(op)
    full = op.string("pooling_convention", "valid", choices=("valid", "full")) == "full"
    data = op.inputs[0]
    overhang = _overhang(op, window, data) if full else [0] * window.rank
    if kind == "max":
        if any(window.pad):
            data = pad_spatial(op, data, window.pad * 2, 0.0)
            window.pad = [0] * window.rank
        return _max_pool(op, window, data, overhang)
    summed = _sum_pool(op, window, data, overhang)
    if kind == "sum":
        return summed
    return summed / math.prod(window.kernel)


@table.register("_contrib_AdaptiveAvgPooling2D")
def adaptive_average_pooling(op: Operation) -> Value:
    """Average (N, C, H, W) to (N, C, *output_size).

    Output ``i`` of ``n`` averages the inputs from ``floor(i * size / n)`` up to, excluding,
    ``ceil((i + 1) * size / n)``. A single number means a square; no number, or more than two, 1.
    """
    (data,) = op.operands(1)
    wanted = numbers_or_none(op, "output_size")
    wanted = {1: wanted * 2, 2: wanted}.get(len(wanted), (1, 1))
    if wanted == (1, 1):
        return op.emit("GlobalAveragePool", data)
    op.require_rank(data, 4)
    if min(wanted) < 1:
        op.invalid("has a size below 1", "output_size")
    height, width = data.shape[2:] if data.shape is not None else (None, None)
    if height and width and height % wanted[0] == 0 and width % wanted[1] == 0:
        window = [height // wanted[0], width // wanted[1]]
        return op.emit("AveragePool", data, kernel_shape=window, strides=window)
    rows = _averages(op, data, 2, wanted[0])
    return rows @ data @ op.emit("Transpose", _averages(op, data, 3, wanted[1]), perm=[1, 0])


def _averages(op: Operation, data: Value, axis: int, wanted: int) -> Value:
    """Build the matrix that averages the elements along an axis down to ``wanted``."""
    size = data.shape[axis] if data.shape is not None else None
    index = np.arange(wanted)[:, None]
    if size is not None:
        op.affordable(size, wanted)
        start, stop = index * size // wanted, -(-(index + 1) * size // wanted)
        place = np.arange(size)
        return op.constant_like(((start <= place) & (place < stop)) / (stop - start), data)
    length, number = extent(op, data, axis), vector(op, wanted)
    ends = [(index + more) * length for more in (0, 1)]
    less = op.constant(wanted - 1, np.int64)
    first = ends[0] / number
    last = (ends[1] + less) / number
    position = places(op, data, axis)
    inside = (first <= position) & (position < last)
    share = op.emit("Reciprocal", op.cast(last - first, op.dtype_of(data)))
    return op.cast(inside, op.dtype_of(data)) * share


def _include_pad(op: Operation) -> bool:
    return op.attr("count_include_pad") in (None, "None") or op.bool("count_include_pad")


def _pool(op: Operation, power: int | None, *, include_pad: bool) -> Value:
    kind = op.string("pool_type", "max", choices=("max", "avg", "sum", "lp"))
    if kind == "lp" and power not in (1, 2, 3):
        op.unsupported("must be 1, 2 or 3 for a p-norm", "p_value")
    if op.bool("global_pool", False):
        return _global_pool(op, kind, power)
    convention = op.string("pooling_convention", "valid", choices=("valid", "full", "same"))
    if convention == "same":
        op.unsupported(
            "must be 'valid' or 'full'; MXNet itself fails on most inputs", "pooling_convention"
        )
    window = spatial(op)
    data = op.inputs[0]
    if window.channels_last:
        data = to_channels_first(op, data, window.rank)
    overhang = _overhang(op, window, data) if convention == "full" else [0] * window.rank
    if kind == "max":
        result = _max_pool(op, window, data, overhang)
    elif kind == "avg":
        result = _average_pool(op, window, data, overhang, include_pad=include_pad)
    else:
        result = _norm_pool(op, window, data, overhang, power if kind == "lp" else None)
    return from_channels_first(op, result, window.rank) if window.channels_last else result


def _global_pool(op: Operation, kind: str, power: int | None) -> Value:
    data = op.inputs[0]
    rank = op.rank_of(data) - 2
    last = layout(op, rank)
    if last:
        data = to_channels_first(op, data, rank)
    if kind in _GLOBAL:
        result = op.emit(_GLOBAL[kind], data)
    else:
        axes = vector(op, *range(2, rank + 2))
        summed = op.emit("ReduceSum", _raised(op, data, power), axes, keepdims=1)
        result = _root(op, summed, power)
    return from_channels_first(op, result, rank) if last else result


def _overhang(op: Operation, window: Spatial, data: Value) -> list[int]:
    """Compute how far the last window may extend beyond the padding, along each axis.

    For an open size it is the most that a window can: with ``stride - 1`` further elements,
    rounding the number of windows down gives what rounding it up gives without them.
    """
    return [
        stride - 1 if size is None else -(size + 2 * pad - kernel) % stride
        for size, pad, kernel, stride in zip(
            _spatial_sizes(op, window, data), window.pad, window.kernel, window.stride, strict=True
        )
    ]


def _spatial_sizes(op: Operation, window: Spatial, data: Value) -> Sequence[int | None]:
    op.require_rank(data, window.rank + 2)
    return (None,) * window.rank if data.shape is None else data.shape[2:]


def _max_pool(op: Operation, window: Spatial, data: Value, overhang: list[int]) -> Value:
    ends = [pad + over for pad, over in zip(window.pad, overhang, strict=True)]
    pads = [*window.pad, *ends]
    if any(pad >= kernel for pad, kernel in zip(ends, window.kernel, strict=True)):
        dtype = op.dtype_of(data)
        if dtype.kind not in "fiu":
            op.unsupported(f"has no maximum of {dtype}")
        lowest = np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min
        data, pads = _padded(op, data, pads, float(lowest)), [0] * len(pads)
    return op.emit("MaxPool", data, kernel_shape=window.kernel, strides=window.stride, pads=pads)


def _average_pool(
    op: Operation, window: Spatial, data: Value, overhang: list[int], *, include_pad: bool
) -> Value:
    if any(overhang):
        summed = _sum_pool(op, window, data, overhang)
        known = [size for size in _spatial_sizes(op, window, data) if size is not None]
        if len(known) < window.rank:
            return summed / _counts(op, window, data, overhang, include_pad=include_pad)
        return summed * _shares(op, window, known, overhang, include_pad=include_pad)
    return op.emit(
        "AveragePool",
        data,
        kernel_shape=window.kernel,
        strides=window.stride,
        pads=window.pad * 2,
        count_include_pad=int(include_pad),
    )


def _norm_pool(
    op: Operation, window: Spatial, data: Value, overhang: list[int], power: int | None
) -> Value:
    return _root(op, _sum_pool(op, window, _raised(op, data, power), overhang), power)


def _sum_pool(op: Operation, window: Spatial, data: Value, overhang: list[int]) -> Value:
    """Sum each window as the average of all its elements, padding included, times their number."""
    ends = [pad + over for pad, over in zip(window.pad, overhang, strict=True)]
    pads = [*window.pad, *ends]
    if any(pad >= kernel for pad, kernel in zip(ends, window.kernel, strict=True)):
        data, pads = pad_spatial(op, data, pads, 0.0), [0] * len(pads)
    mean = op.emit(
        "AveragePool",
        data,
        kernel_shape=window.kernel,
        strides=window.stride,
        pads=pads,
        count_include_pad=1,
    )
    return mean * math.prod(window.kernel)


def _shares(
    op: Operation, window: Spatial, sizes: list[int], overhang: list[int], *, include_pad: bool
) -> np.ndarray:
    """Compute 1 / (number of elements that count) for each position of the result."""
    counts = np.ones((1,) * window.rank)
    for axis, size in enumerate(sizes):
        pad, kernel, stride = window.pad[axis], window.kernel[axis], window.stride[axis]
        positions = (size + 2 * pad + overhang[axis] - kernel) // stride + 1
        op.affordable(positions, counts.size)
        start = np.arange(positions) * stride - pad
        low, high = (-pad, size + pad) if include_pad else (0, size)
        along = np.minimum(start + kernel, high) - np.maximum(start, low)
        shape = [-1 if i == axis else 1 for i in range(window.rank)]
        counts = counts * np.maximum(along, 1).reshape(shape)
    return 1 / counts


def _counts(
    op: Operation, window: Spatial, data: Value, overhang: list[int], *, include_pad: bool
) -> Value:
    """Count the elements of each window at run time: the sum of ones in their place."""
    one = op.constant_like(np.ones((1,) * (window.rank + 2)), data)
    sizes = gathered_shape(op, data, range(2, window.rank + 2))
    ones = op.emit("Expand", one, concatenated(op, [vector(op, 1, 1), sizes]))
    if include_pad and any(window.pad):
        ones = _padded(op, ones, window.pad * 2, 1.0)
        window = copy.copy(window)
        window.pad = [0] * window.rank
    return op.emit("Max", _sum_pool(op, window, ones, overhang), 1)


def _padded(op: Operation, data: Value, pads: list[int], fill: float) -> Value:
    # Only a Pad with zeros is merged into the pooling, see `pad_spatial`; this one needs no sizes.
    rank = len(pads) // 2
    everywhere = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
    return op.emit("Pad", data, everywhere, fill)


def _raised(op: Operation, data: Value, power: int | None) -> Value:
    if power in (None, 1):
        return data
    return data**power


def _root(op: Operation, data: Value, power: int | None) -> Value:
    """Take the root; for an odd power the root of a negative number is negative."""
    if power in (None, 1):
        return data
    if power == 2:
        return op.emit("Sqrt", data)
    return op.emit("Abs", data) ** (1 / power) * op.emit("Sign", data)
