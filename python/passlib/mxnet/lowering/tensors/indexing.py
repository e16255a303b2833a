"""Gathering along an axis, and selection by index or by truth value.

Indices may be floating-point numbers, whose fraction MXNet truncates. An index out of range is
moved to the nearest end (``clip``) or taken modulo the size (``wrap``).
"""

from __future__ import annotations

import math

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, extent, gathered_shape, reshaped, vector
from passlib.mxnet.lowering.real_arithmetic import (
    element_type,
    is_true,
    larger,
    number_of,
    smaller,
)
from passlib.mxnet.lowering.table import table


def _inside(op: Operation, indices: Value, data: Value, axis: int, mode: str) -> Value:
    """Convert indices to int64 and move them into the range of an axis of ``data``."""
    indices = op.cast(indices, np.int64)
    zero = op.constant(0, np.int64)
    if mode == "raise":
        # ONNX counts negative indices from the end, MXNet rejects them.
        outside = op.emit("Less", indices, zero)
        return op.emit("Where", outside, op.constant(LAST, np.int64), indices)
    size = extent(op, data, axis)
    if op.rank_of(indices) == 0:
        size = reshaped(op, size, [])
    if mode == "wrap":
        # ONNX Runtime refuses a constant divisor 0 even where there are no indices.
        empty = size.constant is not None and not size.constant.all()
        return op.emit("Mod", indices, op.constant(1, np.int64) if empty else size)
    last = op.emit("Sub", size, op.constant(1, np.int64))
    return larger(op, smaller(op, indices, last), zero)


@table.register("take", "_npi_take")
def take(op: Operation) -> Value:
    """Gather from data (..., n, ...) along ``axis``, which the axes of the indices replace."""
    data, indices = op.operands(2)
    axis = op.axis(data, op.int("axis", 0))
    mode = op.string("mode", "clip", choices=("clip", "wrap", "raise"))
    return op.emit("Gather", data, _inside(op, indices, data, axis, mode), axis=axis)


@table.register("batch_take")
def batch_take(op: Operation) -> Value:
    """Pick element ``indices[i]`` of each row i of (n, m), in the shape of the indices."""
    data, indices = op.operands(2)
    op.require_rank(data, 2)
    rows, sizes = (data.shape or (None,))[0], indices.shape or ()
    count = math.prod(size for size in sizes if size is not None)
    if rows is not None and None not in sizes and count != rows:
        op.invalid(f"{count} indices do not fit {rows} rows")
    places = _inside(op, indices, data, 1, "clip")
    column = op.emit("Reshape", places, vector(op, -1, 1))
    picked = op.emit("GatherElements", data, column, axis=1)
    shape = gathered_shape(op, indices, range(op.rank_of(indices)))
    return op.emit("Reshape", picked, shape)


@table.register("pick", "choose_element_0index", "_npx_pick")
def pick(op: Operation) -> Value:
    """Pick one element along ``axis`` for each index; the indices lack that axis or have size 1."""
    data, indices = op.operands(2)
    axis = op.optional_int("axis", -1)
    if axis is None:
        op.invalid("MXNet does not define pick without an axis", "axis")
    axis = op.axis(data, axis)
    mode = op.string("mode", "clip", choices=("clip", "wrap"))
    places = _inside(op, indices, data, axis, mode)
    if op.rank_of(indices) < op.rank_of(data):
        places = op.emit("Unsqueeze", places, vector(op, axis))
    picked = op.emit("GatherElements", data, places, axis=axis)
    if op.bool("keepdims", False):
        return picked
    if op.rank_of(data) == 1:
        return picked
    return op.emit("Squeeze", picked, vector(op, axis))


@table.register("one_hot", "_npx_one_hot")
def one_hot(op: Operation) -> Value:
    """Encode indices (...) as (..., depth): ``on_value`` at the index, ``off_value`` elsewhere.

    An index outside 0 .. depth - 1 results in ``off_value`` everywhere.
    """
    dtype = element_type(op, np.float32)
    places = op.emit("Unsqueeze", op.cast(op.inputs[0], np.int64), vector(op, -1))
    if op.int("depth") < 0:
        op.invalid("is negative", "depth")
    depth = (op.constant(number, np.int64) for number in (0, op.int("depth"), 1))
    hit = op.emit("Equal", places, op.emit("Range", *depth))
    on, off = number_of(op, "on_value", 1.0, dtype), number_of(op, "off_value", 0.0, dtype)
    return op.emit("Where", hit, on, off)


@table.register("where")
def where(op: Operation) -> Value:
    """Select the second input where the condition is not 0, else the third.

    A condition with one axis selects whole rows. One of another shape counts for equally many
    successive elements each, whatever its axes are.
    """
    condition, chosen, other = op.operands(3)
    truth = is_true(op, condition)
    sizes, wanted = op.sizes_of(condition), op.sizes_of(chosen)
    if len(sizes) == 1 and len(wanted) > 1:
        if None not in (sizes[0], wanted[0]) and sizes[0] != wanted[0]:
            op.invalid(f"the condition has {sizes[0]} elements for {wanted[0]} rows")
        truth = op.emit("Reshape", truth, vector(op, -1, *[1] * (len(wanted) - 1)))
    elif len(sizes) != len(wanted) or any(
        None not in pair and pair[0] != pair[1] for pair in zip(sizes, wanted, strict=True)
    ):
        return _where_by_runs(op, truth, chosen, other)
    return op.emit("Where", truth, chosen, other)


def _where_by_runs(op: Operation, truth: Value, chosen: Value, other: Value) -> Value:
    """Select runs of successive elements, one for each element of the condition."""
    sizes = op.shape_of(chosen)
    runs, count = math.prod(op.shape_of(truth)), math.prod(sizes)
    if not runs or count % runs:
        op.invalid(f"the condition has {runs} elements, which do not divide {count} elements")
    pieces = (reshaped(op, value, [runs, -1]) for value in (chosen, other))
    selected = op.emit("Where", reshaped(op, truth, [runs, 1]), *pieces)
    return reshaped(op, selected, sizes)


@table.register("_contrib_boolean_mask", "_npi_boolean_mask")
def boolean_mask(op: Operation) -> Value:
    """Keep the slices of ``axis`` whose mask is not 0; their number is known only at run time."""
    data, mask = op.operands(2)
    axis = op.axis(data, op.int("axis", 0))
    kept = op.emit("Squeeze", op.emit("NonZero", is_true(op, mask)), vector(op, 0))
    return op.emit("Gather", data, kept, axis=axis)


@table.register("_contrib_index_array")
def index_array(op: Operation) -> Value:
    """Return the position of each element along ``axes`` (all): (d...) to (d..., k), int64."""
    data = op.inputs[0]
    shape = op.shape_of(data)
    given = op.optional_ints("axes")
    axes = (
        range(len(shape)) if given is None else [op.axis(data, a) for a in given if a is not None]
    )
    if not axes or 0 in shape:
        return op.constant(np.empty((*shape, len(axes))), np.int64)
    parts = []
    for axis in axes:
        count = op.emit("Range", *(op.constant(n, np.int64) for n in (0, shape[axis], 1)))
        turned = [1] * (len(shape) + 1)
        turned[axis] = shape[axis]
        column = op.emit("Reshape", count, vector(op, *turned))
        parts.append(op.emit("Expand", column, vector(op, *shape, 1)))
    return op.emit("Concat", *parts, axis=-1)
