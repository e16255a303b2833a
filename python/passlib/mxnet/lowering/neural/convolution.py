"""Convolution and its transpose."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.table import table

_LAYOUTS = {
    "NCW": (1, False),
    "NCHW": (2, False),
    "NCDHW": (3, False),
    "NWC": (1, True),
    "NHWC": (2, True),
    "NDHWC": (3, True),
}


class Spatial:
    """Attributes of a sliding window, one number for each spatial axis.

    Attributes
    ----------
    kernel, stride, dilate, pad : list of int
        Stride and dilation default to 1, padding (equal on both sides) to 0.
    channels_last : bool
        Whether the channel is the last axis of the data.
    """

    def __init__(self, op: Operation, kernel: tuple[int, ...]) -> None:
        rank = len(kernel)
        self.kernel = list(kernel)
        self.stride = _per_axis(op, "stride", rank, 1)
        self.dilate = _per_axis(op, "dilate", rank, 1)
        self.pad = _per_axis(op, "pad", rank, 0)
        self.channels_last = layout(op, rank)

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def extent(self) -> list[int]:
        """Elements that the kernel spans along each axis, dilation included."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate, strict=True)]


def spatial(op: Operation) -> Spatial:
    """Read kernel, stride, dilate, pad and layout of a node."""
    kernel = op.ints("kernel")
    if not 1 <= len(kernel) <= 3:
        op.invalid("must have one, two or three axes", "kernel")
    if min(kernel) < 1:
        op.invalid("has a size below 1", "kernel")
    if op.rank_of(op.inputs[0]) != len(kernel) + 2:
        op.invalid(
            f"does not fit an input of {op.rank_of(op.inputs[0])} axes, batch and channel included",
            "kernel",
        )
    return Spatial(op, kernel)


def layout(op: Operation, rank: int) -> bool:
    """Read the layout; return whether the channel is the last axis."""
    text = op.string("layout", "None", choices=("None", *_LAYOUTS))
    if text == "None":
        return False
    axes, last = _LAYOUTS[text]
    if axes != rank:
        op.invalid(f"does not fit {rank} spatial axes", "layout")
    return last


def to_channels_first(op: Operation, value: Value, rank: int) -> Value:
    """Move the last axis to the second position."""
    return op.emit("Transpose", value, perm=[0, rank + 1, *range(1, rank + 1)])


def from_channels_first(op: Operation, value: Value, rank: int) -> Value:
    """Move the second axis to the end."""
    return op.emit("Transpose", value, perm=[0, *range(2, rank + 2), 1])


def _per_axis(op: Operation, name: str, rank: int, default: int) -> list[int]:
    values = op.ints(name, ())
    if values and len(values) != rank:
        op.invalid(f"requires one number for each of {rank} spatial axes", name)
    if any(value < (0 if name == "pad" else 1) for value in values):
        op.invalid("has too small a number", name)
    return list(values) or [default] * rank


class _Window(NamedTuple):
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    pad: tuple[int, ...]


def _window(op: Operation) -> _Window:
    kernel = op.ints("kernel")
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    window = _Window(
        kernel,
        op.ints("stride", ()) or ones,
        op.ints("dilate", ()) or ones,
        op.ints("pad", ()) or zeros,
    )
    if len({len(numbers) for numbers in window}) != 1:
        op.invalid("differs in length from stride, dilate or pad", "kernel")
    if not kernel or min(*kernel, *window.stride, *window.dilate) < 1 or min(window.pad) < 0:
        op.invalid("or stride, dilate or pad has too small a number", "kernel")
    return window


@table.register("im2col")
def im2col(op: Operation) -> Value:
    """Extract the blocks of a sliding window as columns: (n, c, space...) to (n, c k, blocks).

    k is the size of the ``kernel``. This is a convolution whose filters copy one element each.
    """
    data, window = op.inputs[0], _window(op)
    channels, count = op.size_of(data, 1), math.prod(window.kernel)
    op.affordable(channels, count, count)
    filters = np.tile(np.eye(count), (channels, 1)).reshape(-1, 1, *window.kernel)
    blocks = op.emit(
        "Conv",
        data,
        op.constant_like(filters, data),
        kernel_shape=window.kernel,
        strides=window.stride,
        dilations=window.dilate,
        pads=(*window.pad, *window.pad),
        group=channels,
    )
    return op.emit("Reshape", blocks, [0, channels * count, -1])


@table.register("col2im")
def col2im(op: Operation) -> Value:
    """Sum blocks (n, c k, blocks) at their positions in images (n, c, ``output_size``...)."""
    data, window = op.inputs[0], _window(op)
    return op.emit(
        "Col2Im",
        data,
        [*op.ints("output_size")],
        [*window.kernel],
        strides=window.stride,
        dilations=window.dilate,
        pads=(*window.pad, *window.pad),
    )


@table.register("Convolution", "Convolution_v1", "_npx_convolution")
def convolution(op: Operation) -> Value:
    """Slide ``num_filter`` kernels over 1, 2 or 3 spatial axes.

    ``data`` (N, C, ...), ``weight`` (num_filter, C / num_group, ...), ``bias`` (num_filter,); in
    channels-last layouts data are (N, ..., C) and weights (num_filter, ..., C / num_group).
    Each spatial size becomes ``(size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1``.
    """
    window = spatial(op)
    data, weight = _channels_first(op, window)
    bias = None if op.bool("no_bias", False) else op.inputs[2]
    result = op.emit("Conv", data, weight, bias, pads=window.pad * 2, **_attributes(op, window))
    return from_channels_first(op, result, window.rank) if window.channels_last else result


@table.register("Deconvolution", "_npx_deconvolution")
def deconvolution(op: Operation) -> Value:
    """Apply the transpose of `convolution`: the gradient of one with the same attributes.

    ``data`` (N, C, ...), ``weight`` (C, num_filter / num_group, ...), ``bias`` (num_filter,).
    Each spatial size becomes ``stride * (size - 1) + dilate * (kernel - 1) + 1 - 2 * pad + adj``;
    if ``target_shape`` is given, ``pad`` and ``adj`` follow from it.
    """
    window = spatial(op)
    data, weight = _channels_first(op, window)
    pad, adjustment = _padding(op, window, data)
    result = op.emit(
        "ConvTranspose",
        data,
        weight,
        None if op.bool("no_bias", True) else op.inputs[2],
        pads=pad * 2,
        output_padding=adjustment,
        **_attributes(op, window),
    )
    return from_channels_first(op, result, window.rank) if window.channels_last else result


def _attributes(op: Operation, window: Spatial) -> dict[str, Any]:
    return {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "dilations": window.dilate,
        "group": op.int("num_group", 1),
    }


def _channels_first(op: Operation, window: Spatial) -> tuple[Value, Value]:
    data, weight = op.operands(2, more=True)
    if not window.channels_last:
        return data, weight
    return to_channels_first(op, data, window.rank), to_channels_first(op, weight, window.rank)


def _padding(op: Operation, window: Spatial, data: Value) -> tuple[list[int], list[int]]:
    target, adjustment = op.ints("target_shape", ()), list(op.ints("adj", ()))
    for name, numbers in (("target_shape", target), ("adj", adjustment)):
        if numbers and len(numbers) != window.rank:
            op.invalid(f"does not have {window.rank} numbers", name)
    if not any(target):
        adjustment = adjustment or [0] * window.rank
        for adjust, stride in zip(adjustment, window.stride, strict=True):
            if adjust >= stride:
                op.invalid("is not below the stride", "adj")
        return window.pad, adjustment
    op.require_rank(data, window.rank + 2)
    sizes = [op.size_of(data, axis) for axis in range(2, window.rank + 2)]
    excess = [
        stride * (size - 1) + extent - want
        for stride, size, extent, want in zip(
            window.stride, sizes, window.extent, target, strict=True
        )
    ]
    if min(excess) < 0:
        op.invalid("is larger than the unpadded result", "target_shape")
    return [(e + 1) // 2 for e in excess], [e % 2 for e in excess]


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
    moves = op.emit("Reshape", offset, [-1, groups, taps, 2, *found])
    place = moves + grid
    limits = op.constant_like(np.reshape(sizes, (2, 1, 1)), offset)
    inside = (place >= 0) & (place < limits)
    moves = op.emit("Min", place, limits - 1) - grid
    both = op.emit("ReduceMin", op.cast(inside, np.int32), [3], keepdims=0)
    mask = op.emit("Reshape", both, [-1, groups * taps, *found])
    flat = op.emit("Reshape", moves, [-1, 2 * groups * taps, *found])
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


@table.register("FullyConnected", "_sparse_FullyConnected", "_npx_fully_connected")
def fully_connected(op: Operation) -> Value:
    """Multiply by the transposed weight and add the bias.

    ``data`` (N, ...), ``weight`` (num_hidden, K), ``bias`` (num_hidden,). With ``flatten`` the
    axes after the first become one and the result is (N, num_hidden); without it only the last
    axis is replaced.
    """
    data, weight = op.operands(2, more=True)
    bias = None if op.bool("no_bias", False) else op.inputs[2]
    rank = op.rank_of(data)
    if op.bool("flatten", True):
        if rank != 2:
            data = op.emit("Flatten", data, axis=1)
        return op.emit("Gemm", data, weight, bias, transB=1)
    product = data @ op.emit("Transpose", weight, perm=[1, 0])
    return product if bias is None else product + bias


@table.register("Embedding", "_sparse_Embedding", "_npx_embedding", "_contrib_SparseEmbedding")
def embedding(op: Operation) -> Value:
    """Look up rows: ``data`` (...), ``weight`` (input_dim, output_dim) to (..., output_dim).

    Indices of any numeric type are truncated to integers and clipped to the valid range.
    """
    data, weight = op.operands(2)
    last = op.constant(op.int("input_dim") - 1, "int64")
    return op.emit("Gather", weight, op.emit("Clip", op.cast(data, "int64"), 0, last), axis=0)
