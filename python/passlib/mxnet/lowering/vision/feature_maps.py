"""Operators on feature maps: resizing, cropping, regions of interest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import (
    concatenated,
    extent,
    gathered_shape,
    reshaped,
    scaled,
    vector,
)
from passlib.mxnet.lowering.table import table


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
    op.require_rank(op.inputs[0], 4)
    enlarged = [_repeated(op, value, scale) for value in op.inputs]
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
    op.require_rank(data, 4)
    start = gathered_shape(op, data, (0, 1))
    sizes = concatenated(op, [start, *_resized(op, data)])
    corners = op.bool("align_corners", True)
    return op.emit(
        "Resize",
        data,
        None,
        None,
        sizes,
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
    op.require_rank(data, 4)
    size = gathered_shape(op, data, (2, 3))
    if len(op.inputs) == 2:
        op.require_rank(op.inputs[1], 4)
        wanted = gathered_shape(op, op.inputs[1], (2, 3))
    else:
        wanted = vector(op, *op.counted("h_w", 2, default=(0, 0)))
    if op.bool("center_crop", False):
        start = _folded(op, "Div", _folded(op, "Sub", size, wanted), vector(op, 2))
    else:
        start = vector(op, *op.counted("offset", 2, default=(0, 0)))
    stop = _folded(op, "Add", start, wanted)
    first, last, most = start.constant, stop.constant, size.constant
    if (first is not None and first.min() < 0) or (
        last is not None and most is not None and (last > most).any()
    ):
        op.invalid(f"the rectangle is not within {describe(data)}")
    return op.emit("Slice", data, start, stop, vector(op, 2, 3))


def _folded(op: Operation, op_type: str, left: Value, right: Value) -> Value:
    """Add, subtract or divide vectors of sizes; constants at once."""
    if left.constant is None or right.constant is None:
        return op.emit(op_type, left, right)
    functions = {"Add": np.add, "Sub": np.subtract, "Div": np.floor_divide}
    return op.constant(functions[op_type](left.constant, right.constant), np.int64)


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
    ``aligned`` shifts by half an element. With ``position_sensitive`` each cell has channels of
    its own: (R, C / (h * w), h, w).
    """
    data, regions = op.operands(2)
    height, width = op.counted("pooled_size", 2)
    image = op.emit("Gather", regions, op.constant(0, "int64"), axis=1)
    bounds = (vector(op, bound) for bound in (1, 5, 1))
    aligned = op.emit(
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
    if not op.bool("position_sensitive", False):
        return aligned
    cells = height * width
    channels = op.size_of(data, 1)
    if channels % cells:
        op.invalid(f"{channels} channels do not serve {height} x {width} cells", "pooled_size")
    # Cell k takes its number from the channels k, k + cells, k + 2 cells, ...
    every = reshaped(op, aligned, [(0,), channels // cells, cells * cells])
    own = op.emit("Gather", every, vector(op, *range(0, cells * cells, cells + 1)), axis=2)
    return reshaped(op, own, [(0,), channels // cells, height, width])


def _repeated(op: Operation, value: Value, scale: int) -> Value:
    """Repeat elements of an input up to ``scale`` times the size of the first input."""
    op.require_rank(value, 4)
    first = op.inputs[0]
    factors: Value | None = op.constant([1, 1, scale, scale], np.float32)
    wanted = None
    if value is not first:
        _require_multiple(op, value, scale)
        height, width = (scaled(op, extent(op, first, axis), scale) for axis in (2, 3))
        factors = None
        wanted = concatenated(op, [gathered_shape(op, value, (0, 1)), height, width])
    return op.emit(
        "Resize",
        value,
        None,
        factors,
        wanted,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _require_multiple(op: Operation, value: Value, scale: int) -> None:
    """Check that an input scales to the enlarged first one by one whole number, if known."""
    sizes, whole = ((each.shape or (None,) * 4)[2:] for each in (value, op.inputs[0]))
    factors = set()
    for size, full in zip(sizes, whole, strict=True):
        if size is None or full is None:
            continue
        if size == 0 or full * scale % size:
            op.unsupported(f"an input of {sizes} does not scale by {scale} times {whole}")
        factors.add(full * scale // size)
    if len(factors) > 1:
        op.unsupported(f"an input of {sizes} does not scale by {scale} times {whole}")


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
        group=op.size_of(data, 1),
    )


def _resized(op: Operation, data: Value) -> list[Value]:
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
        op.require_rank(op.inputs[1], 4)
        return [gathered_shape(op, op.inputs[1], (2, 3))]
    scales = [op.optional_float("scale_height"), op.optional_float("scale_width")]
    if not mode.startswith("to_") and None in scales:
        if mode == "odd_scale" or scales[0] is not None:
            op.unsupported("requires both scale_height and scale_width", "mode")
        return [vector(op, op.int("height", 1), op.int("width", 1))]
    if mode == "size" and None in (data.shape or ()):
        return [_scaled_by(op, data, axis, scales[axis - 2] or 1.0) for axis in (2, 3)]
    size = [op.size_of(data, axis) for axis in (2, 3)]
    if mode.startswith("to_"):
        odd = int("odd" in mode)
        step = -1 if mode.endswith("down") else 1
        found = [length if length % 2 == odd else length + step for length in size]
    else:
        pairs = [(length, scale) for length, scale in zip(size, scales, strict=True) if scale]
        odd = int(mode == "odd_scale")
        found = [
            int((length - 1) * scale) + 1 if odd and length % 2 else int(length * scale)
            for length, scale in pairs
        ]
    return [vector(op, *found)]


def _scaled_by(op: Operation, data: Value, axis: int, scale: float) -> Value:
    """Multiply the size of an axis by a real number, rounding down."""
    size = op.cast(extent(op, data, axis), np.float64)
    return op.cast(op.emit("Mul", size, op.constant(scale, np.float64)), np.int64)
