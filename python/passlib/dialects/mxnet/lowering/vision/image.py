"""Preparation of images, the namespace ``image``: data are (H, W, C) or (N, H, W, C)."""

from __future__ import annotations

import numpy as np

from passlib.dialects.mxnet.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector

__all__ = ["crop", "flip_left_right", "flip_top_bottom", "normalize", "to_tensor"]


@table.register("_image_to_tensor", "_npx__image_to_tensor")
def to_tensor(op: Operation) -> Value:
    """Convert (H, W, C) of any type, 0 to 255, to (C, H, W) of float32, 0 to 1."""
    (data,) = op.operands(1)
    scaled = op.emit("Div", op.cast(data, "float32"), op.constant(255, "float32"))
    perm = {3: [2, 0, 1], 4: [0, 3, 1, 2]}.get(op.rank_of(data))
    if perm is None:
        op.unsupported("requires an input of three or four axes")
    return op.emit("Transpose", scaled, perm=perm)


@table.register("_image_normalize", "_npx__image_normalize")
def normalize(op: Operation) -> Value:
    """Subtract ``mean`` and divide by ``std`` by channel: (C, H, W) or (N, C, H, W)."""
    (data,) = op.operands(1)
    mean = _by_channel(op, data, "mean", 0.0)
    return op.emit("Div", op.emit("Sub", data, mean), _by_channel(op, data, "std", 1.0))


@table.register("_image_crop", "_npx__image_crop")
def crop(op: Operation) -> Value:
    """Crop ``height`` rows from ``y`` on and ``width`` columns from ``x`` on."""
    (data,) = op.operands(1)
    start = [op.int("y"), op.int("x")]
    stop = [start[0] + op.int("height"), start[1] + op.int("width")]
    size = op.shape_of(data, least=3)[-3:-1]
    if min(start) < 0 or any(last > have for last, have in zip(stop, size, strict=True)):
        op.unsupported(f"the rectangle {start} to {stop} is not within {size}")
    bounds = (vector(op, *bound) for bound in (start, stop, [-3, -2]))
    return op.emit("Slice", data, *bounds)


@table.register("_image_flip_left_right", "_npx__image_flip_left_right")
def flip_left_right(op: Operation) -> Value:
    """Reverse the columns."""
    return _flipped(op, -2)


@table.register("_image_flip_top_bottom", "_npx__image_flip_top_bottom")
def flip_top_bottom(op: Operation) -> Value:
    """Reverse the rows."""
    return _flipped(op, -3)


def _flipped(op: Operation, axis: int) -> Value:
    bounds = (vector(op, bound) for bound in (-1, np.iinfo(np.int64).min, axis, -1))
    return op.emit("Slice", op.inputs[0], *bounds)


def _by_channel(op: Operation, data: Value, name: str, default: float) -> Value:
    """Read one number for all channels, or one for each, as a constant that broadcasts."""
    numbers = op.floats(name, (default,))
    channels = op.shape_of(data, least=3)[-3]
    if len(numbers) not in (1, channels):
        op.unsupported(f"requires one number, or one for each of {channels} channels", name)
    return op.constant_like(np.reshape(numbers, (-1, 1, 1)), data)
