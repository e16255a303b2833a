"""Convolution over height and width, and its transpose."""

from __future__ import annotations

from passlib.families.nnvm.lowering.layouts import (
    DATA,
    KERNEL,
    axis_order,
    pads,
    pair,
    require_room,
    require_shape,
    transposed,
    uses_order,
)
from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value


@table.register("conv2d")
def convolution(op: Operation) -> Value:
    """Convolve height and width with ``channels`` kernels.

    ``data`` (N, C, H, W), ``weight`` (channels, C / groups, *kernel_size), ``bias`` (channels,)
    unless ``use_bias`` is false; other orders of axes by ``layout``, ``kernel_layout`` and
    ``out_layout``. A size becomes
    ``(size + padding - dilation * (kernel - 1) - 1) // stride + 1``.
    """
    layout, data, weight, bias = _inputs(op)
    channels, groups, kernel = _extent(op)
    known = None if data.shape is None else data.shape[1]
    require_shape(op, weight, channels, None if known is None else known // groups, *kernel)
    dilation, padding = pair(op, "dilation", 1), pads(op)
    require_room(op, data, kernel, dilation, padding)
    result = op.emit(
        "Conv",
        data,
        weight,
        bias,
        kernel_shape=kernel,
        strides=pair(op, "strides", 1),
        dilations=dilation,
        pads=padding,
        group=groups,
    )
    return transposed(op, result, DATA, axis_order(op, "out_layout", layout, DATA))


@table.register("conv2d_transpose")
def transposed_convolution(op: Operation) -> Value:
    """Transpose of `convolution`: the gradient of one with the same attributes.

    ``data`` (N, C, H, W), ``weight`` (C, channels / groups, *kernel_size), ``bias`` (channels,).
    A size becomes
    ``stride * (size - 1) + dilation * (kernel - 1) + 1 - padding + output_padding``.
    """
    layout, data, weight, bias = _inputs(op)
    channels, groups, kernel = _extent(op)
    require_shape(op, weight, data.shape[1] if data.shape else None, channels // groups, *kernel)
    strides, extra = pair(op, "strides", 1), pair(op, "output_padding", 0)
    if any(e and e >= s for e, s in zip(extra, strides, strict=True)):
        op.unsupported("is not below the stride", "output_padding")
    dilation, padding = pair(op, "dilation", 1), pads(op)
    for i, size in enumerate(data.shape[2:] if data.shape else ()):
        if size is not None:
            span = strides[i] * (size - 1) + dilation[i] * (kernel[i] - 1) + 1 + extra[i]
            if span <= padding[i] + padding[i + 2]:
                op.unsupported(f"leaves none of {span} rows or columns", "padding")
    result = op.emit(
        "ConvTranspose",
        data,
        weight,
        bias,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilation,
        pads=padding,
        output_padding=extra,
        group=groups,
    )
    return transposed(op, result, DATA, layout)


def _extent(op: Operation) -> tuple[int, int, list[int]]:
    """Return the numbers of output channels and groups, and the size of the kernel."""
    channels, groups = op.int("channels"), op.int("groups", 1)
    if groups < 1 or channels % groups:
        op.unsupported(f"do not divide {channels} channels", "groups")
    return channels, groups, pair(op, "kernel_size")


def _inputs(op: Operation) -> tuple[str, Value, Value, Value | None]:
    """Return the layout, and data, weight and bias in ONNX's order of axes."""
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
    kernel_layout = axis_order(op, "kernel_layout", KERNEL, KERNEL)
    weight = transposed(op, op.inputs[1], kernel_layout, KERNEL)
    bias = op.inputs[2] if op.bool("use_bias", True) else None
    if bias is not None:
        require_shape(op, bias, op.int("channels"))
    if op.attr("out_dtype") not in (None, "same", "-1", "None"):
        dtype = op.dtype("out_dtype")
        if dtype is None or dtype.kind != "f":
            op.unsupported("must be a floating-point type", "out_dtype")
        data, weight = op.cast(data, dtype), op.cast(weight, dtype)
        bias = None if bias is None else op.cast(bias, dtype)
    return layout, data, weight, bias
