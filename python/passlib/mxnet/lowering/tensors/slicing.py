"""Slices, assignment to slices, and padding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, gathered_shape, vector
from passlib.mxnet.lowering.real_arithmetic import number_of
from passlib.mxnet.lowering.table import table

_FIRST = np.iinfo(np.int64).min


class _Range(NamedTuple):
    begin: int
    end: int
    step: int


def _ranges(op: Operation, data: Value) -> list[_Range]:
    """Return a range for each leading axis that ``begin`` and ``end`` cover."""
    begin, end = op.optional_ints("begin") or (), op.optional_ints("end") or ()
    step = op.optional_ints("step", ()) or (None,) * len(begin)
    if not len(begin) == len(end) == len(step) <= op.rank_of(data):
        op.invalid("differs in length from end or step, or exceeds the rank", "begin")
    ranges = []
    for first, last, given in zip(begin, end, step, strict=True):
        stride = 1 if given is None else given
        if stride == 0:
            op.invalid("contains 0", "step")
        start, stop = (0, LAST) if stride > 0 else (LAST, _FIRST)
        ranges.append(
            _Range(start if first is None else first, stop if last is None else last, stride)
        )
    return ranges


def _bounds(op: Operation, ranges: list[_Range]) -> tuple[Value, Value, Value, Value]:
    """Return starts, ends, axes and steps as inputs of ONNX's Slice."""
    return (
        vector(op, *(r.begin for r in ranges)),
        vector(op, *(r.end for r in ranges)),
        vector(op, *range(len(ranges))),
        vector(op, *(r.step for r in ranges)),
    )


@table.register("slice", "crop", "_npx_slice")
def slice_(op: Operation) -> Value:
    """Return ``data[begin:end:step]`` for the leading axes; each bound is a number or None."""
    data = op.inputs[0]
    return op.emit("Slice", data, *_bounds(op, _ranges(op, data)))


@table.register("slice_axis")
def slice_axis(op: Operation) -> Value:
    """Slice an axis from ``begin`` to ``end`` (excluded); negative bounds count from its end."""
    data = op.inputs[0]
    begin, end, axis = op.int("begin"), op.optional_int("end"), op.axis(data, op.int("axis"))
    size = op.sizes_of(data)[axis]
    if size is not None and end is not None and end > size:
        op.invalid(f"is beyond axis {axis} of {size}", "end")
    bounds = (begin, LAST if end is None else end, axis)
    return op.emit("Slice", data, *(vector(op, bound) for bound in bounds))


@table.register("slice_like")
def slice_like(op: Operation) -> Value:
    """Keep the first elements along ``axes`` (all), as many as the second input has there."""
    data, other = op.operands(2)
    given = op.ints("axes", ())
    if not given and op.rank_of(data) != op.rank_of(other):
        op.invalid("is required for inputs of different ranks", "axes")
    # An axis may be given twice, also once from the end.
    pairs = {op.axis(data, axis): op.axis(other, axis) for axis in given}
    pairs = pairs or {axis: axis for axis in range(op.rank_of(data))}
    axes = list(pairs)
    ends = gathered_shape(op, other, list(pairs.values()))
    return op.emit("Slice", data, vector(op, *[0] * len(axes)), ends, vector(op, *axes))


def _replaced(
    op: Operation, data: Value, ranges: list[_Range], axis: int, part: Value | None
) -> Value:
    """Replace a slice of ``data``, from ``axis`` on, by ``part`` or the attribute ``scalar``."""
    if axis == len(ranges):
        if part is not None:
            return part
        number = number_of(op, "scalar", 0.0, op.dtype_of(data))
        return op.emit("Expand", number, op.emit("Shape", data))
    begin, end, step = ranges[axis]
    size = op.shape_of(data)[axis]
    # NumPy slices in the same way, but only None is an end before the first element.
    places = np.arange(size)[begin : None if end == _FIRST else end : step]
    if not places.size:
        return data
    inner = op.emit("Gather", data, vector(op, *places), axis=axis)
    inner = _replaced(op, inner, ranges, axis + 1, part)
    column = [1] * op.rank_of(data)
    column[axis] = places.size
    index = op.emit("Reshape", vector(op, *places), vector(op, *column))
    index = op.emit("Expand", index, op.emit("Shape", inner))
    return op.emit("ScatterElements", data, index, inner, axis=axis)


@table.register("_slice_assign", "_crop_assign", "_npi_slice_assign")
def slice_assign(op: Operation) -> Value:
    """Replace ``[begin:end:step]`` of the first input by the second."""
    data, part = op.operands(2)
    return _replaced(op, data, _ranges(op, data), 0, part)


@table.register("_slice_assign_scalar", "_crop_assign_scalar", "_npi_slice_assign_scalar")
def slice_assign_scalar(op: Operation) -> Value:
    """Replace ``[begin:end:step]`` of the input by ``scalar``."""
    data = op.inputs[0]
    return _replaced(op, data, _ranges(op, data), 0, None)


@table.register("Pad", "pad")
def pad(op: Operation) -> Value:
    """Pad each axis by ``pad_width`` (before, after): a constant, the edge, or a reflection."""
    data = op.inputs[0]
    mode = op.string("mode", choices=("constant", "edge", "reflect"))
    widths = op.ints("pad_width")
    if len(widths) != 2 * op.rank_of(data):
        op.invalid("requires two numbers for each axis", "pad_width")
    if min(widths, default=0) < 0:
        op.invalid("is negative", "pad_width")
    pads = vector(op, *widths[::2], *widths[1::2])
    if mode != "constant":
        return op.emit("Pad", data, pads, mode=mode)
    filling = number_of(op, "constant_value", 0.0, op.dtype_of(data))
    return op.emit("Pad", data, pads, filling)
