"""Convolution and its transpose."""

from __future__ import annotations

from typing import Any

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.neural.layout import (
    Spatial,
    from_channels_first,
    spatial,
    to_channels_first,
)
from passlib.mxnet.lowering.table import table


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
