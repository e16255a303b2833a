"""Concatenation, splitting, repetition and reversal."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import (
    LAST,
    extent,
    flattened,
    numbers_or_none,
    reshaped,
    vector,
)
from passlib.mxnet.lowering.table import table


@table.register("Concat", "concat")
def concat(op: Operation) -> Value:
    """Concatenate along the axis ``dim``."""
    axis = op.axis(op.inputs[0], op.int("dim", 1))
    return op.emit("Concat", *op.inputs, axis=axis)


@table.register("stack")
def stack(op: Operation) -> Value:
    """Concatenate along a new axis, which is ``axis`` of the result."""
    axis = op.axis(op.inputs[0], op.int("axis", 0), extra=1)
    raised = [op.emit("Unsqueeze", value, vector(op, axis)) for value in op.inputs]
    return op.emit("Concat", *raised, axis=axis)


@table.register("SliceChannel", "split")
def slice_channel(op: Operation) -> list[Value]:
    """Split into ``num_outputs`` equal pieces along ``axis``, which ``squeeze_axis`` drops."""
    data, count = op.inputs[0], op.int("num_outputs")
    axis = op.axis(data, op.int("axis", 1))
    size = data.shape[axis] if data.shape is not None else None
    if count < 1 or (size is not None and size % count):
        op.invalid(f"does not divide axis {axis} of {describe(data)}", "num_outputs")
    pieces = op.emit("Split", data, axis=axis, num_outputs=count, outputs=count)
    return _squeezed(op, pieces, axis)


@table.register("_split_v2", "_npi_split")
def split_v2(op: Operation) -> list[Value]:
    """Split into ``sections`` pieces along ``axis``, or before each of ``indices``.

    If the sections do not divide the axis, the first ones are longer by one. ``squeeze_axis``
    drops the axis.
    """
    return split_along(op, op.axis(op.inputs[0], op.int("axis", 1)))


def split_along(op: Operation, axis: int) -> list[Value]:
    """Split along an axis as the attributes ``sections`` and ``indices`` say, see `split_v2`."""
    data, sections = op.inputs[0], op.int("sections", 0)
    if sections > 0:
        sizes = _shares(op, data, axis, sections)
        return _squeezed(op, op.emit("Split", data, sizes, axis=axis, outputs=sections), axis)
    begins = op.ints("indices")
    if not begins:
        op.invalid("has no beginning of a piece", "indices")
    size = None if data.shape is None else data.shape[axis]
    if size == 0:
        return _squeezed(op, [op.emit("Identity", data) for _ in begins], axis)
    if any(begin > end for begin, end in pairwise(begins)):
        op.invalid("falls", "indices")
    if begins[0] != 0:
        op.invalid("does not begin with 0", "indices")
    if size is not None and begins[-1] > size:
        op.invalid(f"has a place beyond axis {axis} of size {size}", "indices")
    ends = (*begins[1:], LAST)
    pieces = [
        op.emit("Slice", data, *(vector(op, number) for number in (begin, end, axis)))
        for begin, end in zip(begins, ends, strict=True)
    ]
    return _squeezed(op, pieces, axis)


def _shares(op: Operation, data: Value, axis: int, sections: int) -> Value:
    """Return the sizes of the pieces of an axis, of which the first ones may be longer by one."""
    whole = extent(op, data, axis)
    if whole.constant is not None:
        size, longer = divmod(int(whole.constant[0]), sections)
        return vector(op, *[size + 1] * longer, *[size] * (sections - longer))
    count = vector(op, sections)
    rest = op.emit("Mod", whole, count)
    op.affordable(sections)
    first = op.emit("Less", vector(op, *range(sections)), rest)
    return op.emit("Add", op.emit("Div", whole, count), op.cast(first, np.int64))


def _squeezed(op: Operation, pieces: list[Value], axis: int) -> list[Value]:
    if not op.bool("squeeze_axis", False):
        return pieces
    return [op.emit("Squeeze", piece, vector(op, axis)) for piece in pieces]


@table.register("tile", "_npi_tile")
def tile(op: Operation) -> Value:
    """Repeat the array ``reps`` times along each axis; the shorter shape gains axes of size 1."""
    data, reps = op.inputs[0], numbers_or_none(op, "reps")
    rank = op.rank_of(data)
    if len(reps) > rank:
        data = op.emit("Unsqueeze", data, vector(op, *range(len(reps) - rank)))
    reps = (1,) * (rank - len(reps)) + reps
    return op.emit("Tile", data, vector(op, *reps))


@table.register("repeat", "_np_repeat")
def repeat(op: Operation) -> Value:
    """Repeat each element ``repeats`` times along ``axis``, or of the flattened array."""
    data, axis, repeats = op.inputs[0], op.optional_int("axis"), op.int("repeats")
    if axis is None:
        data, axis = flattened(op, data), 0
    axis, rank = op.axis(data, axis), op.rank_of(data)
    if repeats == 0:
        # MXNet drops the other axes, too.
        return op.emit("Expand", op.constant_like(0, data), vector(op, 0))
    raised = op.emit("Unsqueeze", data, vector(op, axis + 1))
    counts = [repeats if position == axis + 1 else 1 for position in range(rank + 1)]
    copies = op.emit("Tile", raised, vector(op, *counts))
    before = [(position,) for position in range(axis)]
    after = [(position,) for position in range(axis + 2, rank + 1)]
    return reshaped(op, copies, [*before, (axis, axis + 1), *after])


@table.register("reverse", "flip")
def reverse(op: Operation) -> Value:
    """Reverse the order along each of ``axis``; two reversals of an axis leave it."""
    data, given = op.inputs[0], op.ints("axis")
    if min(given, default=0) < 0:
        op.invalid("has a negative axis", "axis")
    axes = [op.axis(data, axis) for axis, times in Counter(given).items() if times % 2]
    count = len(axes)
    starts, ends = [-1] * count, [np.iinfo(np.int64).min] * count
    steps = vector(op, *[-1] * count)
    return op.emit("Slice", data, vector(op, *starts), vector(op, *ends), vector(op, *axes), steps)
