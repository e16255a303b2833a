"""Resizing of images, with exactly the indices and weights of the original."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.families.dlprim.lowering.common import floats, options_of, size_of
from passlib.families.dlprim.lowering.table import table
from passlib.families.dlprim.shape_rules import resized
from passlib.lowering import Operation, Value
from passlib.lowering.misfit import Misfit

_Array = np.ndarray[Any, Any]
_FLOAT = np.float32


@table.register("Interpolation")
def interpolation(op: Operation) -> Value:
    """Resize (N, C, H, W) to ``out_h`` and ``out_w``, or by ``scale_y`` and ``scale_x``.

    With r the step in the input, ``nearest`` takes element ``floor(i * r)``, ``nearest-exact``
    ``floor((i + 0.5) * r)``, and ``bilinear`` blends the neighbours of
    ``max(r * (i + 0.5) - 0.5, 0)``, or of ``r * i`` with ``align_corners``. Computed in float32, as
    by the original.
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    height, width = (size_of(op, data, axis) for axis in (2, 3))
    try:
        sizes = resized(options, height, width)
    except Misfit as error:
        op.unsupported(str(error), "scale_y")
    if min(sizes) < 1:
        op.unsupported(f"returns an empty image, {sizes}")
    op.affordable(sizes[0])
    op.affordable(sizes[1])
    scales = (options["scale_y"], options["scale_x"])
    if options["method"] != "bilinear":
        offset = 0.5 if options["method"] == "nearest-exact" else 0.0
        for axis, before, after, scale in zip((2, 3), (height, width), sizes, scales, strict=True):
            index = op.constant(_nearest(before, after, scale, offset), np.int64)
            data = op.emit("Gather", data, index, axis=axis)
        return data
    # Columns first: the original blends two elements of each row, then the two rows.
    for axis, before, after, scale in reversed(
        list(zip((2, 3), (height, width), sizes, scales, strict=True))
    ):
        step = _step(before, after, scale, options["align_corners"])
        data = _blended(op, data, axis, _neighbours(before, after, step, options["align_corners"]))
    return data


def _nearest(before: int, after: int, scale: float, offset: float) -> _Array:
    step = _FLOAT(1 / scale) if scale > 0 else _FLOAT(before) / _FLOAT(after)
    places: _Array = (np.arange(after, dtype=_FLOAT) + _FLOAT(offset)) * step
    chosen: _Array = np.minimum(places.astype(np.int64), before - 1)
    return chosen


def _step(before: int, after: int, scale: float, align_corners: bool) -> float:
    """Return the step in the input for each new element; callers round it to float32."""
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1.0 / float(_FLOAT(scale)) if scale > 0 else before / after


def _neighbours(
    before: int, after: int, step: float, align_corners: bool
) -> tuple[_Array, _Array, _Array]:
    """Return lower and upper neighbours and weights of the upper ones, by new position."""
    places = np.arange(after, dtype=_FLOAT)
    if align_corners:
        places = places * _FLOAT(step)
    else:
        places = np.maximum(_FLOAT(step) * (places + _FLOAT(0.5)) - _FLOAT(0.5), _FLOAT(0))
    lower = np.minimum(places.astype(np.int64), before - 1)
    upper = np.minimum(lower + 1, before - 1)
    return lower, upper, places - lower.astype(_FLOAT)


def _blended(
    op: Operation, data: Value, axis: int, neighbours: tuple[_Array, _Array, _Array]
) -> Value:
    lower, upper, share = neighbours
    shape = (1, 1, -1, 1) if axis == 2 else (1, 1, 1, -1)
    parts = []
    for index, weight in ((lower, _FLOAT(1) - share), (upper, share)):
        taken = op.emit("Gather", data, op.constant(index, np.int64), axis=axis)
        parts.append(op.emit("Mul", taken, op.constant_like(weight.reshape(shape), data)))
    return op.emit("Add", *parts)
