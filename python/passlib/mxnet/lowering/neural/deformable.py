"""Convolutions whose sampling positions are displaced by computed offsets."""

from __future__ import annotations

import math

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.neural.layout import spatial
from passlib.mxnet.lowering.table import table


@table.register("_contrib_DeformableConvolution")
def deformable_convolution(op: Operation) -> Value:
    """Convolve (N, C, H, W), each sample displaced by an offset.

    ``offset`` (N, 2 * groups * kh * kw, h, w) alternates y and x, ``weight`` (num_filter, C /
    num_group, kh, kw), ``bias`` (num_filter,). Samples are interpolated. Those before the first
    or from the end on are zero, those after the last element are that element; in ONNX all fade
    out, so both are brought about by a mask and by offsets that end at the last element.
    """
    data, offset, weight = op.operands(3, more=True)
    return _convolved(op, data, *_bounded(op, data, offset), weight)


@table.register("_contrib_ModulatedDeformableConvolution")
def modulated_deformable_convolution(op: Operation) -> Value:
    """Apply `deformable_convolution` with samples that ``mask`` scales.

    ``mask`` (N, groups * kh * kw, h, w) is the third input, before the weight.
    """
    data, offset, mask, weight = op.operands(4, more=True)
    return _convolved(op, data, offset, mask, weight)


def _bounded(op: Operation, data: Value, offset: Value) -> tuple[Value, Value]:
    """Return offsets that lead to the last element at most, and a mask of the samples within."""
    window = spatial(op)
    sizes = op.shape_of(data, least=4)[2:]
    groups, taps = op.int("num_deformable_group", 1), math.prod(window.kernel)
    steps = np.indices(window.kernel).reshape(2, taps)
    found = [
        (size + 2 * pad - extent) // stride + 1
        for size, pad, extent, stride in zip(
            sizes, window.pad, window.extent, window.stride, strict=True
        )
    ]
    if min(found) < 1:
        raise Misfit(f"data of {sizes} are smaller than the kernel")
    op.affordable(2 * taps, *found)
    base = np.zeros((1, 1, taps, 2, *found))
    for axis in range(2):
        start = np.arange(found[axis]) * window.stride[axis] - window.pad[axis]
        places = steps[axis][:, None] * window.dilate[axis] + start
        base[0, 0, :, axis] = places[:, :, None] if axis == 0 else places[:, None, :]
    grid = op.constant_like(base, offset)
    moves = op.emit("Reshape", offset, vector(op, -1, groups, taps, 2, *found))
    place = op.emit("Add", moves, grid)
    limits = op.constant_like(np.reshape(sizes, (2, 1, 1)), offset)
    inside = op.emit(
        "And",
        op.emit("GreaterOrEqual", place, op.constant_like(0, place)),
        op.emit("Less", place, limits),
    )
    last = op.emit("Sub", limits, op.constant_like(1, limits))
    moves = op.emit("Sub", op.emit("Min", place, last), grid)
    both = op.emit("ReduceMin", op.cast(inside, np.int32), vector(op, 3), keepdims=0)
    mask = op.emit("Reshape", both, vector(op, -1, groups * taps, *found))
    flat = op.emit("Reshape", moves, vector(op, -1, 2 * groups * taps, *found))
    return flat, op.cast(mask, op.dtype_of(data))


def _convolved(op: Operation, data: Value, offset: Value, mask: Value, weight: Value) -> Value:
    window = spatial(op)
    if window.rank != 2 or window.channels_last:
        op.unsupported("only two spatial axes with channels first are supported")
    return op.emit(
        "DeformConv",
        data,
        weight,
        offset,
        None if op.bool("no_bias", False) else op.inputs[-1],
        mask,
        kernel_shape=window.kernel,
        strides=window.stride,
        dilations=window.dilate,
        pads=window.pad * 2,
        group=op.int("num_group", 1),
        offset_group=op.int("num_deformable_group", 1),
    )
