"""Pooling of regions in which every cell has channels of its own, and of rotated regions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.vision.interpolation import (
    bilinear,
    column,
    element,
    rounded,
)


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
        step = op.emit("Div", extent, op.constant_like(size, extent))
        turn = op.constant_like(np.arange(size).reshape(1, 1, size), step)
        ends = []
        for shift, how in ((0, "Floor"), (1, "Ceil")):
            count = op.emit("Add", turn, op.constant_like(shift, turn))
            place = op.emit(how, op.emit("Add", op.emit("Mul", count, step), start))
            clipped = op.emit("Clip", place, _like(op, 0, place), _like(op, limit, place))
            ends.append(op.cast(clipped, np.int64))
        column_first = vector(op, 0, 1, size, 1) if axis else vector(op, 0, 1, 1, size)
        bounds.append([op.emit("Reshape", end, column_first) for end in ends])
    wide = op.cast(data, np.float64)
    for axis in (2, 3):
        wide = op.emit("CumSum", wide, op.constant(axis, "int64"))
    wide = op.emit("Pad", wide, vector(op, 0, 0, 1, 1, 0, 0, 0, 0), op.constant(0.0, "float64"))
    flat, sizes = flattened(op, wide), (shape[0], channels, height + 1, width + 1)
    image = op.cast(column(op, regions, 0, 4), np.int64)
    channel = op.constant(_channels(channels, group, size), "int64")
    (top, bottom), (left, right) = bounds
    corners = [
        element(op, flat, sizes, (image, channel, y, x))
        for y, x in ((bottom, right), (top, right), (bottom, left), (top, left))
    ]
    total = op.emit(
        "Add", op.emit("Sub", corners[0], corners[1]), op.emit("Sub", corners[3], corners[2])
    )
    zero = op.constant(0, "int64")
    sides = [op.emit("Max", op.emit("Sub", b, a), zero) for a, b in ((top, bottom), (left, right))]
    area = op.emit("Mul", *sides)
    some = op.emit("Greater", area, zero)
    safe = op.emit("Max", area, op.constant(1, "int64"))
    mean = op.emit("Div", total, op.cast(safe, np.float64))
    return op.cast(op.emit("Where", some, mean, op.constant(0.0, "float64")), op.dtype_of(data))


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
    positions, inside = [], None
    for axis, limit in ((1, height), (0, width)):
        start, extent = _span(op, regions, axis, 0.5)
        start, extent = (
            op.emit("Reshape", v, vector(op, -1, 1, 1, 1, 1, 1)) for v in (start, extent)
        )
        steps = np.arange(size)[:, None] / size + np.arange(samples) / (size * samples)
        turned = (1, 1, size, 1, samples, 1) if axis else (1, 1, 1, size, 1, samples)
        place = op.emit("Mul", extent, op.constant_like(steps.reshape(turned), extent))
        place = op.emit("Add", place, start)
        if not still:
            move = op.emit("Mul", _moves(op, offsets[0], axis, deep), extent)
            place = op.emit("Add", place, move)
        valid = op.emit(
            "And",
            op.emit("GreaterOrEqual", place, _like(op, -0.5, place)),
            op.emit("LessOrEqual", place, _like(op, limit - 0.5, place)),
        )
        inside = valid if inside is None else op.emit("And", inside, valid)
        positions.append(op.emit("Clip", place, _like(op, 0, place), _like(op, limit - 1, place)))
    assert inside is not None
    image = op.cast(column(op, regions, 0, 6), np.int64)
    channel = op.constant(_channels(channels, group, size)[..., None, None], "int64")
    values = bilinear(op, data, image, channel, (positions[0], positions[1]))
    values = op.emit("Where", inside, values, _like(op, 0, values))
    counts = op.cast(inside, op.dtype_of(data))
    axes = vector(op, 4, 5)
    count = op.emit("ReduceSum", counts, axes, keepdims=0)
    total = op.emit("ReduceSum", values, axes, keepdims=0)
    result = op.emit("Div", total, op.emit("Max", count, _like(op, 1, count)))
    return result, op.declare(data.dtype, result.shape, "the numbers of samples are not provided")


@table.register("_contrib_RROIAlign")
def rotated_roi_align(op: Operation) -> Value:
    """Average interpolated samples of rotated regions: (N, C, H, W), (R, 6) to (R, C, P, Q).

    A region is the number of its image, center x and y, width, height, and an angle in degrees.
    """
    data, regions = op.operands(2)
    rows, columns = op.counted("pooled_size", 2)
    samples = op.int("sampling_ratio", -1)
    if samples < 1:
        op.unsupported(
            "the number of samples must be given: a region may have any", "sampling_ratio"
        )
    _, channels, height, width = op.shape_of(data, 4)
    scale = _like(op, op.float("spatial_scale"), regions)
    center_x, center_y, extent_x, extent_y = (
        op.emit("Mul", column(op, regions, index, 6), scale) for index in range(1, 5)
    )
    angle = op.emit("Mul", column(op, regions, 5, 6), _like(op, math.pi / 180, regions))
    sine, cosine = op.emit("Sin", angle), op.emit("Cos", angle)
    local = []
    for extent, count, form in (
        (extent_x, columns, (1, 1, 1, columns, 1, samples)),
        (extent_y, rows, (1, 1, rows, 1, samples, 1)),
    ):
        whole = op.emit("Max", extent, _like(op, 1, extent))
        steps = (np.arange(count)[:, None] + (np.arange(samples) + 0.5) / samples) / count - 0.5
        local.append(op.emit("Mul", whole, op.constant_like(steps.reshape(form), whole)))
    across, down = local
    x = op.emit("Add", op.emit("Mul", across, cosine), op.emit("Mul", down, sine))
    y = op.emit("Sub", op.emit("Mul", down, cosine), op.emit("Mul", across, sine))
    positions, inside = [], None
    for moved, center, limit in ((y, center_y, height), (x, center_x, width)):
        place = op.emit("Add", moved, center)
        valid = op.emit(
            "And",
            op.emit("GreaterOrEqual", place, _like(op, -1, place)),
            op.emit("LessOrEqual", place, _like(op, limit, place)),
        )
        inside = valid if inside is None else op.emit("And", inside, valid)
        positions.append(op.emit("Clip", place, _like(op, 0, place), _like(op, limit - 1, place)))
    assert inside is not None
    image = op.cast(column(op, regions, 0, 6), np.int64)
    channel = op.constant(np.arange(channels).reshape(1, -1, 1, 1, 1, 1), "int64")
    values = bilinear(op, data, image, channel, (positions[0], positions[1]))
    values = op.emit("Where", inside, values, _like(op, 0, values))
    return op.emit("ReduceMean", values, vector(op, 4, 5), keepdims=0)


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
    stop = op.emit("Add", rounded(op, column(op, regions, 3 + axis, 3)), _like(op, 1, regions))
    start, stop = (
        op.emit("Sub", op.emit("Mul", end, _like(op, scale, end)), _like(op, shift, end))
        for end in (start, stop)
    )
    return start, op.emit("Max", op.emit("Sub", stop, start), _like(op, 0.1, start))


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
    scaled = op.emit("Mul", moved, _like(op, op.float("trans_std", 0.0), moved))
    return op.emit("Unsqueeze", scaled, vector(op, 4, 5))


def _like(op: Operation, number: float, value: Value) -> Value:
    return op.constant_like(number, value)
