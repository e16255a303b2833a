"""Operators on feature maps: resizing, cropping, regions of interest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.dialects.mxnet.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector

__all__ = ["bilinear_resize", "crop", "roi_align", "roi_pooling", "upsampling"]


@table.register("UpSampling")
def upsampling(op: Operation) -> Value:
    """Enlarge (N, C, H, W) by the factor ``scale``.

    ``nearest`` repeats elements; several inputs are enlarged to the first one's new size, then
    concatenated on axis 1 or summed. ``bilinear`` is a depthwise transposed convolution whose
    weight (C, 1, k, k), k = 2 * scale - scale % 2, is the second input.
    """
    scale = op.int("scale")
    if op.string("sample_type", choices=("nearest", "bilinear")) == "bilinear":
        return _transposed(op, scale)
    height, width = (size * scale for size in op.shape_of(op.inputs[0], 4)[2:])
    enlarged = [_repeated(op, value, height, width) for value in op.inputs]
    if len(enlarged) == 1:
        return enlarged[0]
    mode = op.string("multi_input_mode", "concat", choices=("concat", "sum"))
    return op.emit("Sum", *enlarged) if mode == "sum" else op.emit("Concat", *enlarged, axis=1)


@table.register("_contrib_BilinearResize2D")
def bilinear_resize(op: Operation) -> Value:
    """Resize (N, C, H, W) by linear interpolation along both axes.

    ``mode``: to ``height`` and ``width`` or by the two scales (size), by scales that keep the
    corner elements of odd sizes (odd_scale), to the size of the second input (like), or to the
    next even or odd size.
    """
    data = op.inputs[0]
    shape = op.shape_of(data, 4)
    sizes = [*shape[:2], *_resized(op, shape[2:])]
    corners = op.bool("align_corners", True)
    return op.emit(
        "Resize",
        data,
        None,
        None,
        vector(op, *sizes),
        mode="linear",
        coordinate_transformation_mode="align_corners" if corners else "pytorch_half_pixel",
    )


@table.register("Crop")
def crop(op: Operation) -> Value:
    """Crop a rectangle from (N, C, H, W).

    Its size is ``h_w``, or that of a second input; it is centered with ``center_crop``, else at
    ``offset``.
    """
    data = op.inputs[0]
    size = op.shape_of(data, 4)[2:]
    wanted = (
        op.shape_of(op.inputs[1], 4)[2:]
        if len(op.inputs) == 2
        else op.counted("h_w", 2, default=(0, 0))
    )
    if op.bool("center_crop", False):
        start = tuple((have - want) // 2 for have, want in zip(size, wanted, strict=True))
    else:
        start = op.counted("offset", 2, default=(0, 0))
    stop = tuple(first + want for first, want in zip(start, wanted, strict=True))
    if min(start) < 0 or any(last > have for last, have in zip(stop, size, strict=True)):
        op.unsupported(f"the rectangle {start} to {stop} is not within {size}")
    bounds = (vector(op, *bound) for bound in (start, stop, (2, 3)))
    return op.emit("Slice", data, *bounds)


@table.register("ROIPooling", "_npx_roi_pooling")
def roi_pooling(op: Operation) -> Sequence[Value]:
    """Take the maximum of each cell: (N, C, H, W) and regions (R, 5) to (R, C, *pooled_size).

    A region is the number of its image and two corners, rounded after scaling. The hidden second
    output holds the positions of the maxima.
    """
    data, regions = op.operands(2)
    result = op.emit(
        "MaxRoiPool",
        data,
        regions,
        pooled_shape=list(op.counted("pooled_size", 2)),
        spatial_scale=op.float("spatial_scale"),
    )
    why = "the positions of maxima are not provided"
    return result, op.declare(np.dtype(np.int32), result.shape, why)


@table.register("_contrib_ROIAlign")
def roi_align(op: Operation) -> Value:
    """Average interpolated samples of each cell: (N, C, H, W) and (R, 5) to (R, C, h, w).

    A cell has ``sample_ratio`` samples along each axis, or as many as it has elements;
    ``aligned`` shifts by half an element.
    """
    if op.bool("position_sensitive", False):
        op.unsupported("ONNX's RoiAlign is not position sensitive", "position_sensitive")
    data, regions = op.operands(2)
    height, width = op.counted("pooled_size", 2)
    image = op.emit("Gather", regions, op.constant(0, "int64"), axis=1)
    bounds = (vector(op, bound) for bound in (1, 5, 1))
    return op.emit(
        "RoiAlign",
        data,
        op.emit("Slice", regions, *bounds),
        op.cast(image, "int64"),
        output_height=height,
        output_width=width,
        sampling_ratio=max(op.int("sample_ratio", -1), 0),
        spatial_scale=op.float("spatial_scale"),
        coordinate_transformation_mode=(
            "half_pixel" if op.bool("aligned", False) else "output_half_pixel"
        ),
    )


def _repeated(op: Operation, value: Value, height: int, width: int) -> Value:
    shape = op.shape_of(value, 4)
    if 0 in shape[2:]:
        op.unsupported("an input has no elements")
    if height % shape[2] or width % shape[3] or height // shape[2] != width // shape[3]:
        op.unsupported(f"an input of {shape[2:]} does not scale to {(height, width)}")
    return op.emit(
        "Resize",
        value,
        None,
        None,
        vector(op, *shape[:2], height, width),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _transposed(op: Operation, scale: int) -> Value:
    data, weight = op.operands(2)
    kernel = 2 * scale - scale % 2
    return op.emit(
        "ConvTranspose",
        data,
        weight,
        kernel_shape=[kernel] * 2,
        strides=[scale] * 2,
        pads=[scale // 2] * 4,
        group=op.shape_of(data, 4)[1],
    )


def _resized(op: Operation, size: Sequence[int]) -> list[int]:
    mode = op.string(
        "mode",
        "size",
        choices=(
            "size",
            "odd_scale",
            "like",
            "to_even_down",
            "to_even_up",
            "to_odd_down",
            "to_odd_up",
        ),
    )
    if mode == "like":
        return list(op.shape_of(op.inputs[1], 4)[2:])
    if mode.startswith("to_"):
        odd = int("odd" in mode)
        step = -1 if mode.endswith("down") else 1
        return [length if length % 2 == odd else length + step for length in size]
    scales = [op.optional_float("scale_height"), op.optional_float("scale_width")]
    if None in scales:
        if mode == "odd_scale" or scales != [None, None]:
            op.unsupported("requires both scale_height and scale_width", "mode")
        return [op.int("height", 1), op.int("width", 1)]
    pairs = [(length, scale) for length, scale in zip(size, scales, strict=True) if scale]
    if mode == "odd_scale":
        return [
            int(length * scale) if length % 2 == 0 else int((length - 1) * scale) + 1
            for length, scale in pairs
        ]
    return [int(length * scale) for length, scale in pairs]
