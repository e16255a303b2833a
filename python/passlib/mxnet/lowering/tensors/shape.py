"""New shapes for the same elements: reshape and the like, transposition."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import (
    LAST,
    concatenated,
    extent,
    flattened,
    numbers_or_none,
    reshaped,
    vector,
)
from passlib.mxnet.lowering.table import table

Dim = int | tuple[int, ...]
"""A size, -1 for the remaining size, or the axes of the input whose sizes are multiplied."""

_INFER = -1

CLASSIC = {0: "copy", -2: "rest", -3: "join", -4: "split"}
"""The codes of ``Reshape``."""

NUMPY = {-2: "copy", -3: "skip", -4: "rest", -5: "join", -6: "split"}
"""The codes of ``_npx_reshape``, in which 0 is a size; ``skip`` drops an axis of size 1."""


def decode(
    codes: Sequence[int],
    shape: Sequence[int | None],
    rank: int,
    meaning: Mapping[int, str] = CLASSIC,
) -> list[Dim]:
    """Determine the source of the size of each axis of the result.

    Raises `ValueError` if the codes refer to more axes than there are, or are invalid.

    Parameters
    ----------
    codes : sequence of int
        Sizes, -1 (remaining size), and codes that copy one size or the rest, merge two, split one
        into the two numbers that follow, or skip one.
    shape : sequence of (int or None)
        Of the input.
    rank : int
        Of the input.
    meaning : mapping of int to str
        `CLASSIC` or `NUMPY`.
    """
    dims: list[Dim] = []
    source = 0
    position = 0
    while position < len(codes):
        code = codes[position]
        position += 1
        kind = meaning.get(code, "")
        if kind == "rest":
            dims += [(axis,) for axis in range(source, rank)]
            source = rank
        elif kind == "split":
            if position + 2 > len(codes):
                raise ValueError(f"{code} must be followed by two numbers")
            dims += _split(codes[position], codes[position + 1], source, shape)
            position += 2
            source += 1
        elif kind == "join":
            _demand(source + 1, rank)
            dims.append((source, source + 1))
            source += 2
        elif kind:
            _demand(source, rank)
            if kind == "copy":
                dims.append((source,))
            elif shape[source] != 1:
                raise ValueError(f"skips axis {source}, whose size is not known to be 1")
            source += 1
        elif code >= _INFER:
            dims.append(code)
            source += 1
        else:
            raise ValueError(f"{code} is neither a size nor a code")
    if dims.count(_INFER) > 1:
        raise ValueError("leaves more than one size open")
    return dims


def decode_reversed(
    codes: Sequence[int],
    shape: Sequence[int | None],
    rank: int,
    meaning: Mapping[int, str] = CLASSIC,
) -> list[Dim]:
    """Decode codes that are matched to the input's axes from the right.

    MXNet reverses the codes, so the two numbers of a split precede its code.
    """
    backward = decode(codes[::-1], shape[::-1], rank, meaning)
    return [
        dim if isinstance(dim, int) else tuple(rank - 1 - axis for axis in reversed(dim))
        for dim in reversed(backward)
    ]


def _split(first: int, second: int, source: int, shape: Sequence[int | None]) -> list[Dim]:
    _demand(source, len(shape))
    if first == _INFER and second == _INFER:
        raise ValueError("a split leaves both sizes open")
    if min(first, second) < _INFER or 0 in (first, second):
        raise ValueError(f"cannot split into {first} and {second}")
    size = shape[source]
    if size is None:
        return [first, second]
    if first == _INFER:
        first = size // second
    if second == _INFER:
        second = size // first
    if first * second != size:
        raise ValueError(f"cannot split {size} into {first} and {second}")
    return [first, second]


def _demand(axis: int, rank: int) -> None:
    if axis >= rank:
        raise ValueError(f"refers to axis {axis} of an input with {rank} axes")


@table.register("Reshape", "reshape")
def reshape(op: Operation) -> Value:
    """Reshape to ``shape``, whose codes 0, -1, -2, -3, -4 refer to the input's axes.

    0 copies a size, -1 is the remaining size, -2 copies all further sizes, -3 merges two axes, -4
    splits one into the two numbers that follow. With ``reverse`` axes are matched from the right.
    ``target_shape`` and ``keep_highest`` are the older form, in which 0 is the remaining size.
    """
    data, codes = op.inputs[0], op.ints("shape", ())
    if not codes:
        return _reshape_old(op, data)
    rank = op.rank_of(data)
    shape = data.shape or ()
    decoder = decode_reversed if op.bool("reverse", False) else decode
    try:
        dims = decoder(codes, shape, rank)
    except ValueError as error:
        op.invalid(str(error), "shape")
    return reshaped(op, data, dims)


def _reshape_old(op: Operation, data: Value) -> Value:
    target = op.ints("target_shape", ())
    if not target:
        op.invalid("specifies no shape", "shape")
    dims: list[Dim] = [size or -1 for size in target]
    if op.bool("keep_highest", False):
        dims[0] = (0,)
    if dims.count(-1) > 1:
        op.invalid("leaves more than one size open", "target_shape")
    return reshaped(op, data, dims)


@table.register("reshape_like", "_npx_reshape_like")
def reshape_like(op: Operation) -> Value:
    """Reshape axes ``lhs_begin`` to ``lhs_end`` to the other's ``rhs_begin`` to ``rhs_end``.

    Without bounds the result has the whole shape of the second input.
    """
    data, other = op.operands(2)
    begin, end = _range(op, data, "lhs")
    other_begin, other_end = _range(op, other, "rhs")
    sizes = [extent(op, data, axis) for axis in range(begin)]
    sizes += [extent(op, other, axis) for axis in range(other_begin, other_end)]
    sizes += [extent(op, data, axis) for axis in range(end, op.rank_of(data))]
    return op.emit("Reshape", data, concatenated(op, sizes))


def _range(op: Operation, value: Value, side: str) -> tuple[int, int]:
    rank = op.rank_of(value)
    begin = op.optional_int(f"{side}_begin") or 0
    end = op.optional_int(f"{side}_end")
    bounds = [begin, rank if end is None else end]
    bounds = [bound + rank if bound < 0 else bound for bound in bounds]
    if not 0 <= bounds[0] <= bounds[1] <= rank:
        op.invalid(f"is outside the {rank} axes", f"{side}_begin")
    return bounds[0], bounds[1]


@table.register("Flatten", "flatten", "_npx_batch_flatten")
def flatten(op: Operation) -> Value:
    """Merge all axes but the first: (n, ...) to (n, m)."""
    return op.emit("Flatten", op.inputs[0], axis=1)


@table.register("expand_dims", "_npi_expand_dims")
def expand_dims(op: Operation) -> Value:
    """Insert an axis of size 1 at ``axis`` of the result."""
    data = op.inputs[0]
    return op.emit("Unsqueeze", data, [op.axis(data, op.int("axis"), extra=1)])


def squeezed_axes(op: Operation) -> list[int]:
    """Return the axes in ``axis``, or all of size 1 if it is not given."""
    data, given = op.inputs[0], op.optional_ints("axis")
    if given is None:
        return [axis for axis, size in enumerate(op.shape_of(data)) if size == 1]
    return sorted({op.axis(data, axis) for axis in given if axis is not None})


@table.register("squeeze")
def squeeze(op: Operation) -> Value:
    """Drop axes of size 1: those of ``axis``, or all; one axis always stays."""
    data, axes = op.inputs[0], squeezed_axes(op)
    if axes and len(axes) == op.rank_of(data):
        axes = axes[1:]
    return op.emit("Squeeze", data, axes) if axes else data


@table.register("transpose")
def transpose(op: Operation) -> Value:
    """Permute the axes to the order ``axes``; reverse them if it is not given.

    An axis may repeat and another be missing: as in MXNet, the strides of the listed axes then
    locate each element.
    """
    data, axes = op.inputs[0], op.ints("axes", ())
    if axes and min(axes) < 0:
        op.invalid("must be counted from the front", "axes")
    order = [op.axis(data, axis) for axis in axes]
    if len(set(order)) < len(order) == op.rank_of(data):
        return _repeated(op, data, order)
    return op.emit("Transpose", data, perm=order) if order else op.emit("Transpose", data)


def _repeated(op: Operation, data: Value, order: Sequence[int]) -> Value:
    """Transpose to axes of which some repeat."""
    sizes = op.shape_of(data)
    if len(order) == 2:
        if sizes[0] != sizes[1]:
            op.invalid("repeats an axis of a matrix that is not square", "axes")
        return op.emit("Transpose", data)
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    wanted = [sizes[axis] for axis in order]
    op.affordable(*wanted)
    steps = (np.arange(sizes[axis]) * strides[axis] for axis in order)
    places = functools.reduce(np.add.outer, steps)
    if places.size and places.max() >= math.prod(sizes):
        op.invalid("repeats an axis so that it leads beyond the array", "axes")
    return op.emit("Gather", flattened(op, data), op.constant(places, np.int64), axis=0)


@table.register("SwapAxis", "swapaxes", "_npi_swapaxes")
def swap_axis(op: Operation) -> Value:
    """Exchange axes ``dim1`` and ``dim2``."""
    data = op.inputs[0]
    first, second = (op.axis(data, op.int(name, 0)) for name in ("dim1", "dim2"))
    order = list(range(op.rank_of(data)))
    order[first], order[second] = second, first
    return op.emit("Transpose", data, perm=order)


@table.register("shape_array", "_npx_shape_array")
def shape_array(op: Operation) -> Value:
    """Return the shape as int64, shape (rank,)."""
    return op.emit("Shape", op.inputs[0])


@table.register("size_array")
def size_array(op: Operation) -> Value:
    """Return the number of elements as int64, shape (1,)."""
    data = op.inputs[0]
    if data.known:
        return vector(op, int(np.prod(op.shape_of(data), dtype=np.int64)))
    return op.emit("Reshape", op.emit("Size", data), [1])


@table.register("Concat", "concat")
def concat(op: Operation) -> Value:
    """Concatenate along the axis ``dim``."""
    axis = op.axis(op.inputs[0], op.int("dim", 1))
    return op.emit("Concat", *op.inputs, axis=axis)


@table.register("stack")
def stack(op: Operation) -> Value:
    """Concatenate along a new axis, which is ``axis`` of the result."""
    axis = op.axis(op.inputs[0], op.int("axis", 0), extra=1)
    raised = [op.emit("Unsqueeze", value, [axis]) for value in op.inputs]
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
        op.emit("Slice", data, [begin], [end], [axis])
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
    return whole / count + op.cast(vector(op, *range(sections)) < rest, np.int64)


def _squeezed(op: Operation, pieces: list[Value], axis: int) -> list[Value]:
    if not op.bool("squeeze_axis", False):
        return pieces
    return [op.emit("Squeeze", piece, [axis]) for piece in pieces]


@table.register("tile", "_npi_tile")
def tile(op: Operation) -> Value:
    """Repeat the array ``reps`` times along each axis; the shorter shape gains axes of size 1."""
    data, reps = op.inputs[0], numbers_or_none(op, "reps")
    rank = op.rank_of(data)
    if len(reps) > rank:
        data = op.emit("Unsqueeze", data, [*range(len(reps) - rank)])
    reps = (1,) * (rank - len(reps)) + reps
    return op.emit("Tile", data, reps)


@table.register("repeat", "_np_repeat")
def repeat(op: Operation) -> Value:
    """Repeat each element ``repeats`` times along ``axis``, or of the flattened array."""
    data, axis, repeats = op.inputs[0], op.optional_int("axis"), op.int("repeats")
    if axis is None:
        data, axis = flattened(op, data), 0
    axis, rank = op.axis(data, axis), op.rank_of(data)
    if repeats == 0:
        # MXNet drops the other axes, too.
        return op.emit("Expand", op.constant_like(0, data), [0])
    raised = op.emit("Unsqueeze", data, [axis + 1])
    counts = [repeats if position == axis + 1 else 1 for position in range(rank + 1)]
    copies = op.emit("Tile", raised, counts)
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
    return op.emit("Slice", data, starts, [*ends], [*axes], [*[-1] * count])
