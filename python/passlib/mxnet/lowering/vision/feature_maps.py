"""Operators on feature maps: resizing, cropping, regions of interest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import (
    concatenated,
    extent,
    flattened,
    gathered_shape,
    pad_spatial,
    reshaped,
    scaled,
    vector,
)
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.vision.image import bilinear, column, element, rounded


@table.register("Correlation")
def correlation(op: Operation) -> Sequence[Value]:
    """Compare windows of two maps (N, C, H, W) at all displacements: (N, D * D, h, w).

    D = 2 * (max_displacement // stride2) + 1. The result is the mean of products, or of absolute
    differences without ``is_multiply``. Two hidden outputs hold the padded maps.
    """
    first, second = op.operands(2)
    batch, channels, height, width = op.shape_of(first, 4)
    kernel, reach = op.int("kernel_size", 1), op.int("max_displacement", 1)
    stride, step, pad = op.int("stride1", 1), op.int("stride2", 1), op.int("pad_size", 0)
    if kernel % 2 == 0 or min(stride, step) < 1:
        op.invalid("needs an odd kernel and positive strides", "kernel_size")
    border = reach + (kernel - 1) // 2
    padded = [size + 2 * pad for size in (height, width)]
    found = [-(-(size - 2 * border) // stride) for size in padded]
    if min(found) < 1:
        op.invalid(f"maps of {height} x {width} leave no window", "max_displacement")
    extents = [(count - 1) * stride + kernel for count in found]
    maps = [pad_spatial(op, value, [pad] * 4, 0.0) for value in (first, second)]
    radius = reach // step
    moves = [index * step for index in range(-radius, radius + 1)]
    fixed = _window(op, maps[0], (reach, reach), extents)
    compared = []
    for down in moves:
        for across in moves:
            moved = _window(op, maps[1], (reach + down, reach + across), extents)
            both = fixed * moved if op.bool("is_multiply", True) else op.emit("Abs", fixed - moved)
            compared.append(op.emit("ReduceMean", both, [1], keepdims=1))
    joined = op.emit("Concat", *compared, axis=1) if len(compared) > 1 else compared[0]
    if (kernel, stride) != (1, 1):
        joined = op.emit("AveragePool", joined, kernel_shape=[kernel] * 2, strides=[stride] * 2)
    shape = (batch, *padded, channels)
    why = "the padded maps are not provided"
    return joined, *(op.declare(first.dtype, shape, why) for _ in range(2))


def _window(op: Operation, value: Value, start: tuple[int, int], extents: Sequence[int]) -> Value:
    stop = [first + extent for first, extent in zip(start, extents, strict=True)]
    return op.emit("Slice", value, start, [*stop], [2, 3])


@table.register("GridGenerator")
def grid_generator(op: Operation) -> Sequence[Value]:
    """Compute a grid (N, 2, H, W) of sampling positions: x and y, from -1 to 1 over the image.

    ``affine``: data (N, 6) are the rows of a matrix applied to (x, y, 1) over ``target_shape``.
    ``warp``: data (N, 2, H, W) are displacements in elements. The hidden second output is the
    regular grid before displacement or transformation.
    """
    (data,) = op.operands(1)
    why = "the regular grid is not provided"
    if op.string("transform_type", choices=("affine", "warp")) == "affine":
        height, width = _target(op)
        hidden = op.declare(data.dtype, (3, height * width), why)
        return _affine_grid(op, data, height, width), hidden
    op.require_rank(data, 4)
    height, width = op.size_of(data, 2), op.size_of(data, 3)
    if height < 2 or width < 2:
        op.unsupported("a grid must span at least two elements along each axis")
    op.affordable(2, height, width)
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    places = data + np.stack([columns, rows])[None]
    grid = places / (np.array([width - 1, height - 1]).reshape(1, 2, 1, 1) / 2) - 1
    return grid, op.declare(data.dtype, (2, height, width), why)


@table.register("BilinearSampler")
def bilinear_sampler(op: Operation) -> Sequence[Value]:
    """Interpolate (N, C, H, W) at the positions of a grid (N, 2, h, w); zero outside.

    The result is (N, C, h, w). The hidden second output is scratch memory.
    """
    data, grid = op.operands(2)
    op.require_rank(grid, 4)
    shape = None if grid.shape is None else (grid.shape[0], *grid.shape[2:], 2)
    return _sampled(op, data, grid), op.declare(data.dtype, shape, "scratch memory is not provided")


@table.register("SpatialTransformer")
def spatial_transformer(op: Operation) -> Sequence[Value]:
    """Sample (N, C, H, W) on an affine grid of ``target_shape`` computed from (N, 6)."""
    data, matrix = op.operands(2)
    op.require_rank(data, 4)
    op.string("transform_type", choices=("affine",))
    op.string("sampler_type", choices=("bilinear",))
    height, width = _target(op)
    batch = None if data.shape is None else data.shape[0]
    why = "scratch memory is not provided"
    return (
        _sampled(op, data, _affine_grid(op, matrix, height, width)),
        op.declare(data.dtype, (3, height * width), why),
        op.declare(data.dtype, (batch, 2, height * width), why),
    )


def _target(op: Operation) -> tuple[int, int]:
    height, width = op.counted("target_shape", 2, default=(0, 0))
    if height < 2 or width < 2:
        op.unsupported("a grid must span at least two elements along each axis", "target_shape")
    return height, width


def _affine_grid(op: Operation, matrix: Value, height: int, width: int) -> Value:
    op.affordable(3, height, width)
    columns, rows = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    regular = np.stack([columns, rows, np.ones_like(rows)]).reshape(3, height * width)
    op.require_rank(matrix, op.rank_of(matrix), least=1)
    places = op.emit("Reshape", matrix, [-1, 2, 3]) @ regular
    return op.emit("Reshape", places, [-1, 2, height, width])


def _sampled(op: Operation, data: Value, grid: Value) -> Value:
    places = op.emit("Transpose", grid, perm=[0, 2, 3, 1])
    return op.emit("GridSample", data, places, mode="linear", padding_mode="zeros", align_corners=1)


@table.register("_contrib_PSROIPooling")
def psroi_pooling(op: Operation) -> Value:
    """Average each cell of its own channels: (N, D * G * G, H, W), (R, 5) to (R, D, P, P).

    The sums come from an integral image, in double precision.
    """
    data, regions = op.operands(2)
    size, group = op.int("pooled_size"), op.int("group_size", 0) or op.int("pooled_size")
    _, channels, height, width = shape = _grouped(op, data, group)
    bounds = []
    for axis, limit in ((1, height), (0, width)):
        start, extent = _span(op, regions, axis, 0.0)
        step = extent / size
        turn = op.constant_like(np.arange(size).reshape(1, 1, size), step)
        ends = []
        for shift, how in ((0, "Floor"), (1, "Ceil")):
            clipped = op.emit("Clip", op.emit(how, (turn + shift) * step + start), 0, limit)
            ends.append(op.cast(clipped, np.int64))
        column_first = vector(op, 0, 1, size, 1) if axis else vector(op, 0, 1, 1, size)
        bounds.append([op.emit("Reshape", end, column_first) for end in ends])
    wide = op.cast(data, np.float64)
    for axis in (2, 3):
        wide = op.emit("CumSum", wide, op.constant(axis, "int64"))
    wide = op.emit("Pad", wide, [0, 0, 1, 1, 0, 0, 0, 0], 0.0)
    flat, sizes = flattened(op, wide), (shape[0], channels, height + 1, width + 1)
    image = op.cast(column(op, regions, 0, 4), np.int64)
    channel = op.constant(_channels(channels, group, size), "int64")
    (top, bottom), (left, right) = bounds
    corners = [
        element(op, flat, sizes, (image, channel, y, x))
        for y, x in ((bottom, right), (top, right), (bottom, left), (top, left))
    ]
    total = corners[0] - corners[1] + (corners[3] - corners[2])
    area = op.emit("Max", bottom - top, 0) * op.emit("Max", right - left, 0)
    mean = total / op.cast(op.emit("Max", area, 1), np.float64)
    return op.cast(op.where(area > 0, mean, 0.0), op.dtype_of(data))


@table.register("_contrib_DeformablePSROIPooling")
def deformable_psroi_pooling(op: Operation) -> Sequence[Value]:
    """Average interpolated samples of cells that ``trans`` displaces, each cell of own channels.

    ``data`` (N, D * G * G, H, W), regions (R, 5), ``trans`` (R, 2 * classes, parts, parts) to
    (R, D, P, P). The hidden second output counts the samples inside the map.
    """
    still = op.bool("no_trans", False)
    data, regions, *offsets = op.operands(2 if still else 3)
    size, group, samples = op.int("pooled_size"), op.int("group_size"), op.int("sample_per_part", 1)
    _, channels, height, width = _grouped(op, data, group)
    if min(size, samples) < 1:
        op.invalid("is not positive", "pooled_size" if size < 1 else "sample_per_part")
    deep = channels // group**2
    if deep != op.int("output_dim"):
        op.unsupported(f"does not fit {channels} channels", "output_dim")
    positions = []
    for axis in (1, 0):
        start, extent = _span(op, regions, axis, 0.5)
        start, extent = (op.emit("Reshape", v, [-1, 1, 1, 1, 1, 1]) for v in (start, extent))
        steps = np.arange(size)[:, None] / size + np.arange(samples) / (size * samples)
        turned = (1, 1, size, 1, samples, 1) if axis else (1, 1, 1, size, 1, samples)
        place = extent * steps.reshape(turned) + start
        if not still:
            place = place + _moves(op, offsets[0], axis, deep) * extent
        positions.append(place)
    limits = [(-0.5, height - 0.5), (-0.5, width - 0.5)]
    channel = _channels(channels, group, size)[..., None, None]
    values, inside = _sampled_inside(op, data, regions, channel, positions, limits)
    counts = op.cast(inside, op.dtype_of(data))
    axes = vector(op, 4, 5)
    count = op.emit("ReduceSum", counts, axes, keepdims=0)
    result = op.emit("ReduceSum", values, axes, keepdims=0) / op.emit("Max", count, 1)
    return result, op.declare(data.dtype, result.shape, "the numbers of samples are not provided")


@table.register("_contrib_RROIAlign")
def rotated_roi_align(op: Operation) -> Value:
    """Average interpolated samples of rotated regions: (N, C, H, W), (R, 6) to (R, C, P, Q).

    A region is the number of its image, center x and y, width, height, and an angle in degrees.
    Without ``sampling_ratio``, the distance of samples is at most 1.
    """
    data, regions = op.operands(2)
    rows, columns = op.counted("pooled_size", 2)
    samples = op.int("sampling_ratio", -1)
    _, channels, height, width = op.shape_of(data, 4)
    scale = op.float("spatial_scale")
    center_x, center_y, extent_x, extent_y = (
        column(op, regions, index, 6) * scale for index in range(1, 5)
    )
    angle = column(op, regions, 5, 6) * (math.pi / 180)
    sine, cosine = op.emit("Sin", angle), op.emit("Cos", angle)
    local, counts, used = [], [], []
    for size, cells, cell_axis, sample_axis in ((extent_x, columns, 3, 5), (extent_y, rows, 2, 4)):
        whole = op.emit("Max", size, 1)
        count = op.emit("Ceil", whole / cells) if samples < 1 else op.constant_like(samples, whole)
        numbers = _up_to_largest(op, count, sample_axis)
        cell = np.arange(cells).reshape([-1 if axis == cell_axis else 1 for axis in range(6)])
        local.append(whole * (((numbers + 0.5) / count + cell) / cells - 0.5))
        counts.append(count)
        used.append(numbers < count)
    across, down = local
    x = across * cosine + down * sine
    y = down * cosine - across * sine
    positions, limits = [y + center_y, x + center_x], [(-1, height), (-1, width)]
    channel = np.arange(channels).reshape(1, -1, 1, 1, 1, 1)
    values, _ = _sampled_inside(op, data, regions, channel, positions, limits)
    axes = vector(op, 4, 5)
    total = op.emit("ReduceSum", op.where(used[0] & used[1], values, 0), axes, keepdims=0)
    number = counts[0] * counts[1]
    return total / (op.emit("Squeeze", number, axes) if samples < 1 else number)


def _up_to_largest(op: Operation, counts: Value, axis: int) -> Value:
    """Return 0, 1, ... up to the largest of some counts, along one of six axes."""
    flat = op.emit("Reshape", counts, [-1])
    largest = op.emit("ReduceMax", op.emit("Concat", flat, op.constant_like([1], flat), axis=0))
    stop = op.emit("Squeeze", op.cast(largest, np.int64))
    numbers = op.emit("Range", op.constant(0, np.int64), stop, op.constant(1, np.int64))
    shape = [-1 if each == axis else 1 for each in range(6)]
    return op.emit("Reshape", op.cast(numbers, op.dtype_of(counts)), shape)


def _sampled_inside(
    op: Operation,
    data: Value,
    regions: Value,
    channel: np.ndarray,
    positions: Sequence[Value],
    limits: Sequence[tuple[float, float]],
) -> tuple[Value, Value]:
    """Interpolate (R, C, P, P, S, S) samples at y and x; return them, 0 outside, and the mask."""
    masks, places = [], []
    for place, (low, high), size in zip(positions, limits, op.shape_of(data, 4)[2:], strict=True):
        masks.append((place >= low) & (place <= high))
        places.append(op.emit("Clip", place, 0, size - 1))
    inside = masks[0] & masks[1]
    image = op.cast(column(op, regions, 0, 6), np.int64)
    values = bilinear(op, data, image, op.constant(channel, "int64"), (places[0], places[1]))
    return op.where(inside, values, 0), inside


def _grouped(op: Operation, data: Value, group: int) -> tuple[int, ...]:
    shape = op.shape_of(data, 4)
    if group < 1 or shape[1] % group**2:
        raise Misfit(f"{shape[1]} channels do not form groups of {group} x {group} cells")
    return shape


def _channels(channels: int, group: int, size: int) -> np.ndarray:
    """Return the channel of each output channel and cell: (1, D, P, P)."""
    cell = np.clip(np.arange(size) * group // size, 0, group - 1)
    first = np.arange(channels // group**2)[:, None, None] * group
    return ((first + cell[:, None]) * group + cell)[None]


def _span(op: Operation, regions: Value, axis: int, shift: float) -> tuple[Value, Value]:
    """Return start and extent of regions along y (1) or x (0): (R, 1, 1) each."""
    scale = op.float("spatial_scale")
    start = rounded(op, column(op, regions, 1 + axis, 3))
    stop = rounded(op, column(op, regions, 3 + axis, 3)) + 1
    start, stop = (end * scale - shift for end in (start, stop))
    return start, op.emit("Max", stop - start, 0.1)


def _moves(op: Operation, offsets: Value, axis: int, deep: int) -> Value:
    """Return the displacements along an axis for each channel and cell: (R, D, P, P, 1, 1)."""
    _, both, parts, _ = op.shape_of(offsets, 4)
    size, classes = op.int("pooled_size"), both // 2
    if not classes or deep % classes:
        raise Misfit(f"{deep} channels do not fit {classes} classes")
    kind = np.arange(deep) // (deep // classes) * 2 + axis
    part = np.arange(size) * (op.int("part_size", 0) or size) // size
    if part.max() >= parts:
        op.unsupported(f"the offsets have {parts} parts", "part_size")
    moved = op.emit("Gather", offsets, op.constant(kind, "int64"), axis=1)
    for place in (2, 3):
        moved = op.emit("Gather", moved, op.constant(part, "int64"), axis=place)
    return op.emit("Unsqueeze", moved * op.float("trans_std", 0.0), [4, 5])


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
    sizes = concatenated(op, [gathered_shape(op, data, (0, 1)), *_resized(op, data)])
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
    return op.emit("Slice", data, start, stop, [2, 3])


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
    aligned = op.emit(
        "RoiAlign",
        data,
        op.emit("Slice", regions, [1], [5], [1]),
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
    own = op.emit("Gather", every, [*range(0, cells * cells, cells + 1)], axis=2)
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
    modes = ("size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up")
    mode = op.string("mode", "size", choices=modes)
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
    return op.cast(op.cast(extent(op, data, axis), np.float64) * scale, np.int64)
