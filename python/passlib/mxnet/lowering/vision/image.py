"""Preparation of images, the namespace ``image``: data are (H, W, C) or (N, H, W, C)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, reshaped, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.lowering.table import table


@table.register("depth_to_space")
def depth_to_space(op: Operation) -> Value:
    """Turn (n, b b c, h, w) into (n, c, b h, b w), channels ordered by position in the block."""
    data, block = op.inputs[0], _block(op)
    _require_multiple(data, (1,), block**2)
    if is_real(op.dtype_of(data)):
        return op.emit("DepthToSpace", data, blocksize=block, mode="DCR")
    batch, depth, height, width = op.shape_of(data, 4)
    channels = depth // block**2
    apart = vector(op, batch, block, block, channels, height, width)
    turned = op.emit("Transpose", op.emit("Reshape", data, apart), perm=[0, 3, 4, 1, 5, 2])
    return op.emit("Reshape", turned, [batch, channels, block * height, block * width])


@table.register("space_to_depth")
def space_to_depth(op: Operation) -> Value:
    """Turn (n, c, b h, b w) into (n, b b c, h, w), the inverse of `depth_to_space`."""
    data, block = op.inputs[0], _block(op)
    _require_multiple(data, (2, 3), block)
    if is_real(op.dtype_of(data)):
        return op.emit("SpaceToDepth", data, blocksize=block)
    batch, channels, height, width = op.shape_of(data, 4)
    rows, columns = height // block, width // block
    apart = vector(op, batch, channels, rows, block, columns, block)
    turned = op.emit("Transpose", op.emit("Reshape", data, apart), perm=[0, 3, 5, 1, 2, 4])
    return op.emit("Reshape", turned, [batch, block**2 * channels, rows, columns])


def _block(op: Operation) -> int:
    block = op.int("block_size")
    if block < 1:
        op.invalid("is not positive", "block_size")
    return block


def _require_multiple(data: Value, axes: Sequence[int], number: int) -> None:
    for axis in axes:
        size = data.shape[axis] if data.shape is not None and axis < len(data.shape) else None
        if size is not None and size % number:
            raise Misfit(f"the size {size} of axis {axis} is no multiple of {number}")


_ONE = 2048
"""The weight 1."""


def resized_bytes(op: Operation, data: Value, height: int, width: int) -> Value:
    """Resize images (..., H, W, C) of uint8, whose H and W are known."""
    rows, columns = op.shape_of(data, least=3)[-3:-1]
    if 0 in (rows, columns):
        raise Misfit("an image without rows or columns has no other size")
    op.affordable(height + width)
    (left, right), shares = _neighbours(columns, width)
    # Outside of the image, a column has one neighbour; a row keeps two shares of the same one.
    outside = (left == right)[:, None]
    shares = np.where(outside, np.array([_ONE, 0]), shares)
    wide = _weighted(op, op.cast(data, np.int32), (left, right), shares, -2)
    (above, below), shares = _neighbours(rows, height)
    low_bits = op.constant(16, np.int32)
    short = [
        op.emit("Gather", part, op.constant(places, np.int64), axis=-3) / low_bits
        for part, places in ((wide, above), (wide, below))
    ]
    total = op.constant(2, np.int32)
    for part, share in zip(short, shares.T, strict=True):
        total = part * share.reshape(-1, 1, 1) / 2**16 + total
    return op.cast(total / 4, np.uint8)


def _weighted(
    op: Operation, data: Value, places: tuple[np.ndarray, ...], shares: np.ndarray, axis: int
) -> Value:
    first, second = (
        op.emit("Gather", data, op.constant(place, np.int64), axis=axis) for place in places
    )
    before, after = (op.constant(share.reshape(-1, 1), np.int32) for share in shares.T)
    return first * before + second * after


def _neighbours(size: int, wanted: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the two places that each of ``wanted`` places lies between, and their shares."""
    position = ((np.arange(wanted) + 0.5) * (1.0 / (wanted / size)) - 0.5).astype(np.float32)
    before = np.floor(position)
    share = position - before
    weights = np.stack([np.float32(1) - share, share], axis=1) * np.float32(_ONE)
    start = before.astype(np.int64)
    places = (np.clip(start, 0, size - 1), np.clip(start + 1, 0, size - 1))
    return places, np.rint(weights).astype(np.int32)


def column(op: Operation, rows: Value, index: int, rank: int) -> Value:
    """Return one column of regions (R, n) in the shape (R, 1, ...) of ``rank`` axes."""
    picked = op.emit("Gather", rows, op.constant(index, "int64"), axis=1)
    return op.emit("Reshape", picked, op.constant([-1] + [1] * (rank - 1), "int64"))


def rounded(op: Operation, value: Value) -> Value:
    """Round halves away from zero, as C's ``round`` does."""
    return op.emit("Sign", value) * op.emit("Floor", op.emit("Abs", value) + 0.5)


def element(op: Operation, flat: Value, shape: Sequence[int], places: Sequence[Value]) -> Value:
    """Return elements of an array of ``shape``, given flat, at int64 indices that broadcast."""
    index = places[0]
    for size, place in zip(shape[1:], places[1:], strict=True):
        index = index * size + place
    return op.emit("Gather", flat, index, axis=0)


def bilinear(
    op: Operation, data: Value, image: Value, channel: Value, position: tuple[Value, Value]
) -> Value:
    """Interpolate (N, C, H, W) at rows and columns within 0 .. size - 1.

    ``image`` and ``channel`` are int64; all indices broadcast against each other.
    """
    shape = op.shape_of(data, 4)
    flat = flattened(op, data)
    places, weights = [], []
    for value, size in zip(position, shape[2:], strict=True):
        low = op.emit("Floor", value)
        share = value - low
        start = op.cast(low, np.int64)
        places.append((start, op.emit("Min", start + 1, size - 1)))
        weights.append((1 - share, share))
    total = None
    for y, height in zip(places[0], weights[0], strict=True):
        for x, width in zip(places[1], weights[1], strict=True):
            term = element(op, flat, shape, (image, channel, y, x)) * (height * width)
            total = term if total is None else total + term
    assert total is not None
    return total


_STRENGTHS = np.array([55.46, 4.794, 1.148])
_COLOURS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
)
"""Principal components of the colours of ImageNet (Krizhevsky et al. 2012), by column."""


@table.register("_image_to_tensor", "_npx__image_to_tensor")
def to_tensor(op: Operation) -> Value:
    """Convert (H, W, C) of any type, 0 to 255, to (C, H, W) of float32, 0 to 1."""
    (data,) = op.operands(1)
    scaled = op.cast(data, "float32") / 255
    perm = {3: [2, 0, 1], 4: [0, 3, 1, 2]}.get(op.rank_of(data))
    if perm is None:
        op.unsupported("requires an input of three or four axes")
    return op.emit("Transpose", scaled, perm=perm)


@table.register("_image_normalize", "_npx__image_normalize")
def normalize(op: Operation) -> Value:
    """Subtract ``mean`` and divide by ``std`` by channel: (C, H, W) or (N, C, H, W).

    Integers are computed in float32, truncated, and wrap.
    """
    (data,) = op.operands(1)
    dtype = op.dtype_of(data)
    working = data if is_real(dtype) else op.cast(data, np.float32)
    gap = working - _by_channel(op, working, "mean", 0.0)
    result = gap / _by_channel(op, working, "std", 1.0)
    return result if is_real(dtype) else op.cast(op.cast(result, np.int64), dtype)


@table.register("_image_crop", "_npx__image_crop")
def crop(op: Operation) -> Value:
    """Crop ``height`` rows from ``y`` on and ``width`` columns from ``x`` on.

    Columns left of the image are the last ones of the row above: pixels count on from row to row.
    """
    (data,) = op.operands(1)
    op.require_rank(data, least=3)
    rank = op.rank_of(data)
    start = [op.int("y"), op.int("x")]
    extents = [op.int("height"), op.int("width")]
    stop = [first + extent for first, extent in zip(start, extents, strict=True)]
    size = [op.size_of(data, axis) for axis in (rank - 3, rank - 2)]
    outside = any(last > have for last, have in zip(stop, size, strict=True))
    if outside or min(extents) < 1:
        op.invalid(f"the rectangle {start} to {stop} is not within {size}")
    if min(start) >= 0:
        return op.emit("Slice", data, *(vector(op, *bound) for bound in (start, stop, [-3, -2])))
    first = start[0] * size[1] + start[1]
    if first < 0:
        op.invalid(f"the rectangle {start} to {stop} begins before the first pixel")
    return _pixels_counted_on(op, data, first, extents)


def _pixels_counted_on(op: Operation, data: Value, first: int, extents: list[int]) -> Value:
    """Crop rows that begin ``first`` pixels after the beginning, each a whole row further."""
    rank = op.rank_of(data)
    height, width = (op.size_of(data, axis) for axis in (rank - 3, rank - 2))
    lines = reshaped(
        op, data, [*((axis,) for axis in range(rank - 3)), height * width, (rank - 1,)]
    )
    places = first + np.add.outer(np.arange(extents[0]) * width, np.arange(extents[1]))
    return op.emit("Gather", lines, op.constant(places, np.int64), axis=rank - 3)


def _flipped(axis: int, op: Operation) -> Value:
    """Reverse rows (-3) or columns (-2)."""
    return op.emit("Slice", op.inputs[0], [-1], [np.iinfo(np.int64).min], [axis], [-1])


for _name, _axis in (("left_right", -2), ("top_bottom", -3)):
    table.register(f"_image_flip_{_name}", f"_npx__image_flip_{_name}")(partial(_flipped, _axis))


@table.register("_image_adjust_lighting", "_npx__image_adjust_lighting")
def adjust_lighting(op: Operation) -> Value:
    """Add the principal colours of ImageNet, weighted by ``alpha``: (H, W, 3) or (N, H, W, 3).

    Bytes are truncated.
    """
    (data,) = op.operands(1)
    alpha = op.floats("alpha")
    if len(alpha) != 3:
        op.unsupported("needs three numbers", "alpha")
    colours = (_COLOURS * _STRENGTHS * np.array(alpha)).sum(axis=1)
    return _limited(op, op.cast(data, "float32") + colours, data)


@table.register("_image_resize", "_npx__image_resize")
def resize(op: Operation) -> Value:
    """Resize (H, W, C) or (N, H, W, C) to ``size``: width and height.

    One number means a square, or with ``keep_ratio`` the shorter side.
    """
    (data,) = op.operands(1)
    height, width = op.shape_of(data, least=3)[-3:-1]
    size = op.ints("size", ())
    if len(size) == 2:
        return _resized(op, data, size[1], size[0])
    if len(size) != 1:
        op.invalid("needs one or two numbers", "size")
    if not op.bool("keep_ratio", False):
        return _resized(op, data, size[0], size[0])
    if height > width:
        return _resized(op, data, height * size[0] // width, size[0])
    return _resized(op, data, size[0], width * size[0] // height)


@table.register("_cvimresize", "_npi_cvimresize")
def cv_resize(op: Operation) -> Value:
    """Resize (H, W, C) to ``w`` columns and ``h`` rows."""
    (data,) = op.operands(1)
    return _resized(op, data, op.int("h"), op.int("w"))


@table.register("_cvcopyMakeBorder", "_npi_cvcopyMakeBorder")
def copy_make_border(op: Operation) -> Value:
    """Put a border around (H, W, C): of one colour, of the edge, or of the mirrored image."""
    (data,) = op.operands(1)
    kind = op.int("type", 0)
    modes = {0: "constant", 1: "edge", 4: "reflect"}
    if kind not in modes:
        op.unsupported("is none of 0, 1, 4 (constant, replicate, reflect 101)", "type")
    if op.floats("values", ()):
        op.unsupported("only one value for all channels is supported", "values")
    sides = [op.int(side) for side in ("top", "left", "bot", "right")]
    pads = vector(op, *sides[:2], 0, *sides[2:], 0)
    value = op.constant_like(op.float("value", 0.0), data) if kind == 0 else None
    return op.emit("Pad", data, pads, value, mode=modes[kind])


def _resized(op: Operation, data: Value, height: int, width: int) -> Value:
    kind = op.int("interp", 1)
    if kind not in (0, 1):
        op.unsupported("is none of 0 (nearest) and 1 (linear)", "interp")
    *lead, _, _, channels = op.shape_of(data, least=3)
    if min(height, width) < 1:
        op.invalid("has a size below 1", "size")
    if kind == 1 and op.dtype_of(data) == np.uint8:
        return resized_bytes(op, data, height, width)
    sizes = vector(op, *lead, height, width, channels)
    working = op.cast(data, "float32")
    places: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel"}
    if kind == 0:
        places = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    mode = ("nearest", "linear")[kind]
    result = op.emit("Resize", working, None, None, sizes, mode=mode, **places)
    return op.cast(result, op.dtype_of(data))


def _limited(op: Operation, value: Value, like: Value) -> Value:
    """Convert to the element type of an image, bytes truncated and limited."""
    if op.dtype_of(like) == np.uint8:
        ends = (op.constant(end, "float32") for end in (0, 255))
        value = op.emit("Clip", value, *ends)
    return op.cast(value, op.dtype_of(like))


def _by_channel(op: Operation, data: Value, name: str, default: float) -> Value:
    """Read one number for all channels, or one for each, as a constant that broadcasts."""
    numbers = op.floats(name, (default,))
    channels = op.shape_of(data, least=3)[-3]
    if len(numbers) not in (1, channels):
        op.invalid(f"requires one number, or one for each of {channels} channels", name)
    return op.constant_like(np.reshape(numbers, (-1, 1, 1)), data)
