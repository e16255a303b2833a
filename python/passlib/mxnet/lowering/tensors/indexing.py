"""Gathering along an axis, and selection by index or by truth value.

Indices may be floating-point numbers, whose fraction MXNet truncates. An index out of range is
moved to the nearest end (``clip``) or taken modulo the size (``wrap``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, extent, flattened, gathered_shape, reshaped, vector
from passlib.mxnet.lowering.real_arithmetic import element_type, is_true, larger, number_of, smaller
from passlib.mxnet.lowering.table import table


def _tuples_last(op: Operation, indices: Value) -> Value:
    """Transpose (m, ...) to (..., m): index tuples are MXNet's first axis, but ONNX's last."""
    rank = op.rank_of(indices)
    return op.emit("Transpose", op.cast(indices, np.int64), perm=[*range(1, rank), 0])


@table.register("gather_nd", "_npi_gather_nd", "_npx_gather_nd")
def gather_nd(op: Operation) -> Value:
    """Gather from data (x0, ..., xn) at indices (m, y...): (y..., xm, ..., xn)."""
    data, indices = op.operands(2)
    return op.emit("GatherND", data, _tuples_last(op, indices))


@table.register("scatter_nd")
def scatter_nd(op: Operation) -> Value:
    """Write the data (y..., xm, ...) at indices (m, y...) into zeros of ``shape``."""
    data, indices = op.operands(2)
    zeros = op.emit("Expand", op.constant_like(0, data), [*op.ints("shape")])
    return op.emit("ScatterND", zeros, _tuples_last(op, indices), data)


@table.register("_contrib_index_copy")
def index_copy(op: Operation) -> Value:
    """Replace the rows of the first input whose numbers are in the second by those of the third."""
    old, rows, new = op.operands(3)
    return op.emit("ScatterND", old, op.emit("Unsqueeze", op.cast(rows, np.int64), [1]), new)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


@table.register("_ravel_multi_index", "ravel_multi_index")
def ravel_multi_index(op: Operation) -> Value:
    """Turn indices (m, n) into an array of ``shape`` with m axes into flat ones (n,).

    The first size has no effect, so it may be -1.
    """
    tuples, shape = op.inputs[0], op.ints("shape")
    weights = op.constant(np.reshape(_strides(shape), (-1, 1)), np.int64)
    flat = op.emit("ReduceSum", op.cast(tuples, np.int64) * weights, [0], keepdims=0)
    return op.cast(flat, op.dtype_of(tuples))


@table.register("_unravel_index", "unravel_index")
def unravel_index(op: Operation) -> Value:
    """Turn flat indices (n, ...) into an array of ``shape`` with m axes into indices (m, n, ...).

    MXNet's result for several axes has the wrong shape.
    """
    flat, shape = op.inputs[0], op.ints("shape")
    column = (-1, *[1] * op.rank_of(flat))
    row = op.emit("Unsqueeze", op.cast(flat, np.int64), [0])
    steps = row / np.reshape(_strides(shape), column)
    # The first axis is unbounded, since its size may be -1.
    sizes = op.constant(np.reshape((np.iinfo(np.int64).max, *shape[1:]), column), np.int64)
    return op.cast(op.emit("Mod", steps, sizes), op.dtype_of(flat))


def _inside(op: Operation, indices: Value, data: Value, axis: int, mode: str) -> Value:
    """Convert indices to int64 and move them into the range of an axis of ``data``."""
    indices = op.cast(indices, np.int64)
    zero = op.constant(0, np.int64)
    if mode == "raise":
        # ONNX counts negative indices from the end, MXNet rejects them.
        return op.where(indices < zero, LAST, indices)
    size = extent(op, data, axis)
    if op.rank_of(indices) == 0:
        size = reshaped(op, size, [])
    if mode == "wrap":
        # ONNX Runtime refuses a constant divisor 0 even where there are no indices.
        empty = size.constant is not None and not size.constant.all()
        return op.emit("Mod", indices, op.constant(1, np.int64) if empty else size)
    return larger(op, smaller(op, indices, size - 1), zero)


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
    column = op.emit("Reshape", _inside(op, indices, data, 1, "clip"), [-1, 1])
    picked = op.emit("GatherElements", data, column, axis=1)
    return op.emit("Reshape", picked, gathered_shape(op, indices, range(op.rank_of(indices))))


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
        places = op.emit("Unsqueeze", places, [axis])
    picked = op.emit("GatherElements", data, places, axis=axis)
    if op.bool("keepdims", False):
        return picked
    if op.rank_of(data) == 1:
        return picked
    return op.emit("Squeeze", picked, [axis])


@table.register("one_hot", "_npx_one_hot")
def one_hot(op: Operation) -> Value:
    """Encode indices (...) as (..., depth): ``on_value`` at the index, ``off_value`` elsewhere.

    An index outside 0 .. depth - 1 results in ``off_value`` everywhere.
    """
    dtype = element_type(op, np.float32)
    places = op.emit("Unsqueeze", op.cast(op.inputs[0], np.int64), [-1])
    if op.int("depth") < 0:
        op.invalid("is negative", "depth")
    depth = (op.constant(number, np.int64) for number in (0, op.int("depth"), 1))
    hit = places.equals(op.emit("Range", *depth))
    on, off = number_of(op, "on_value", 1.0, dtype), number_of(op, "off_value", 0.0, dtype)
    return op.where(hit, on, off)


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
        truth = op.emit("Reshape", truth, [-1, *[1] * (len(wanted) - 1)])
    elif len(sizes) != len(wanted) or any(
        None not in pair and pair[0] != pair[1] for pair in zip(sizes, wanted, strict=True)
    ):
        return _where_by_runs(op, truth, chosen, other)
    return op.where(truth, chosen, other)


def _where_by_runs(op: Operation, truth: Value, chosen: Value, other: Value) -> Value:
    """Select runs of successive elements, one for each element of the condition."""
    sizes = op.shape_of(chosen)
    runs, count = math.prod(op.shape_of(truth)), math.prod(sizes)
    if not runs or count % runs:
        op.invalid(f"the condition has {runs} elements, which do not divide {count} elements")
    pieces = (reshaped(op, value, [runs, -1]) for value in (chosen, other))
    return reshaped(op, op.emit("Where", reshaped(op, truth, [runs, 1]), *pieces), sizes)


@table.register("_contrib_boolean_mask", "_npi_boolean_mask")
def boolean_mask(op: Operation) -> Value:
    """Keep the slices of ``axis`` whose mask is not 0; their number is known only at run time."""
    data, mask = op.operands(2)
    axis = op.axis(data, op.int("axis", 0))
    kept = op.emit("Squeeze", op.emit("NonZero", is_true(op, mask)), [0])
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
        parts.append(op.emit("Expand", op.emit("Reshape", count, turned), [*shape, 1]))
    return op.emit("Concat", *parts, axis=-1)


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
    return op.emit("Slice", data, [*[0] * len(axes)], ends, axes)


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
    inner = op.emit("Gather", data, [*places], axis=axis)
    inner = _replaced(op, inner, ranges, axis + 1, part)
    column = [1] * op.rank_of(data)
    column[axis] = places.size
    index = op.emit("Reshape", [*places], [*column])
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
    return op.emit("Pad", data, pads, number_of(op, "constant_value", 0.0, op.dtype_of(data)))


def _line(op: Operation) -> tuple[Value, int]:
    """Return the data and the axis to sort along; flattened data for axis None."""
    data, axis = op.inputs[0], op.optional_int("axis", -1)
    if axis is None:
        return flattened(op, data), 0
    return data, op.axis(data, axis)


def _first(
    op: Operation, data: Value, axis: int, count: Value, *, ascending: bool
) -> tuple[Value, Value]:
    largest = int(not ascending)
    made = op.emit("TopK", data, count, axis=axis, largest=largest, sorted=1, outputs=2)
    return made[0], made[1]


@table.register("sort", "_npi_sort")
def sort(op: Operation) -> Value:
    """Sort along ``axis``, ascending unless ``is_ascend`` is false."""
    data, axis = _line(op)
    ascending = op.bool("is_ascend", True)
    return _first(op, data, axis, extent(op, data, axis), ascending=ascending)[0]


@table.register("argsort", "_npi_argsort")
def argsort(op: Operation) -> Value:
    """Return the positions that sort the data along ``axis``, as ``dtype``."""
    data, axis = _line(op)
    ascending = op.bool("is_ascend", True)
    places = _first(op, data, axis, extent(op, data, axis), ascending=ascending)[1]
    return op.cast(places, element_type(op, np.float32))


@table.register("topk", "_npx_topk")
def topk(op: Operation) -> Value | tuple[Value, Value]:
    """Find the ``k`` largest (smallest) along ``axis``: values, positions, both, or a mask.

    A ``k`` below 1 selects all. The mask has the shape and type of the data.
    """
    data, axis = _line(op)
    wanted = op.int("k", 1)
    kind = op.string("ret_typ", "indices", choices=("value", "indices", "mask", "both"))
    count = vector(op, wanted) if wanted >= 1 else extent(op, data, axis)
    values, places = _first(op, data, axis, count, ascending=op.bool("is_ascend", False))
    if kind == "value":
        return values
    if kind == "mask":
        return _mask(op, data, axis, values, places)
    places = op.cast(places, element_type(op, np.float32))
    return (values, places) if kind == "both" else places


def _mask(op: Operation, data: Value, axis: int, values: Value, places: Value) -> Value:
    zeros = op.emit("Expand", op.constant_like(0, data), op.emit("Shape", data))
    ones = op.emit("Expand", op.constant_like(1, data), op.emit("Shape", values))
    mask = op.emit("ScatterElements", zeros, places, ones, axis=axis)
    original = op.inputs[0]
    if data is original:
        return mask
    return op.emit("Reshape", mask, gathered_shape(op, original, range(op.rank_of(original))))
