"""Convolution whose sampling positions are displaced by computed offsets."""

from __future__ import annotations

from passlib.dialects.mxnet.lowering.neural.layout import spatial
from passlib.dialects.mxnet.lowering.table import table
from passlib.lowering import Operation, Value

__all__ = ["modulated_deformable_convolution"]


@table.register("_contrib_ModulatedDeformableConvolution")
def modulated_deformable_convolution(op: Operation) -> Value:
    """Convolve (N, C, H, W), each sample displaced by an offset and scaled by a mask.

    ``offset`` (N, 2 * groups * kh * kw, h, w) alternates y and x, ``mask`` (N, groups * kh *
    kw, h, w), ``weight`` (num_filter, C / num_group, kh, kw), ``bias`` (num_filter,). Samples are
    interpolated, and zero outside the data.
    """
    window = spatial(op)
    if window.rank != 2 or window.channels_last:
        op.unsupported("only two spatial axes with channels first are supported")
    data, offset, mask, weight = op.operands(4, more=True)
    return op.emit(
        "DeformConv",
        data,
        weight,
        offset,
        None if op.bool("no_bias", False) else op.inputs[4],
        mask,
        kernel_shape=window.kernel,
        strides=window.stride,
        dilations=window.dilate,
        pads=window.pad * 2,
        group=op.int("num_group", 1),
        offset_group=op.int("num_deformable_group", 1),
    )
