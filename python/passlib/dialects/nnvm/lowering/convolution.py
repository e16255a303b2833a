"""Convolution over height and width, and its transpose."""

from __future__ import annotations

from passlib.dialects.lowering import Operation, Value
from passlib.dialects.nnvm.lowering.layouts import (
    DATA,
    KERNEL,
    axis_order,
    pads,
    pair,
    transposed,
    uses_order,
)
from passlib.dialects.nnvm.lowering.table import table

__all__ = ["convolution", "transposed_convolution"]


@table.register("conv2d")
def convolution(op: Operation) -> Value:
    """Slide ``channels`` kernels over height and width.

    ``data`` (N, C, H, W), ``weight`` (channels, C / groups, *kernel_size), ``bias`` (channels,)
    unless ``use_bias`` is off; other orders of axes by ``layout``, ``kernel_layout`` and
    ``out_layout``. A size becomes
    ``(size + padding - dilation * (kernel - 1) - 1) // stride + 1``.
    """
    layout, data, weight, bias = _inputs(op)
    result = op.emit(
        "Conv",
        data,
        weight,
        bias,
        kernel_shape=pair(op, "kernel_size"),
        strides=pair(op, "strides", 1),
        dilations=pair(op, "dilation", 1),
        pads=pads(op),
        group=op.int("groups", 1),
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
    strides, extra = pair(op, "strides", 1), pair(op, "output_padding", 0)
    if any(e and e >= s for e, s in zip(extra, strides, strict=True)):
        op.unsupported("is not below the stride", "output_padding")
    result = op.emit(
        "ConvTranspose",
        data,
        weight,
        bias,
        kernel_shape=pair(op, "kernel_size"),
        strides=strides,
        dilations=pair(op, "dilation", 1),
        pads=pads(op),
        output_padding=extra,
        group=op.int("groups", 1),
    )
    return transposed(op, result, DATA, layout)


def _inputs(op: Operation) -> tuple[str, Value, Value, Value | None]:
    """Give the layout, and data, weight and bias in the orders of ONNX."""
    op.int("channels")
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
    kernel_layout = axis_order(op, "kernel_layout", KERNEL, KERNEL)
    weight = transposed(op, op.inputs[1], kernel_layout, KERNEL)
    bias = op.inputs[2] if op.bool("use_bias", True) else None
    if op.attr("out_dtype") not in (None, "same", "-1", "None"):
        dtype = op.dtype("out_dtype")
        if dtype is None or dtype.kind != "f":
            op.unsupported("only real numbers can be asked for", "out_dtype")
        data, weight = op.cast(data, dtype), op.cast(weight, dtype)
        bias = None if bias is None else op.cast(bias, dtype)
    return layout, data, weight, bias
