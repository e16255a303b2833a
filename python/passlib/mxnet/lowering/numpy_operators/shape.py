"""New shapes and new orders of the same elements."""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import (
    LAST,
    concatenated,
    extent,
    flattened,
    gathered_shape,
    reshaped,
    vector,
)
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.shape import NUMPY, decode, decode_reversed, squeezed_axes


@table.register("_np_reshape")
def reshape(op: Operation) -> Value:
    """Reshape to ``newshape``, in which -1 is the remaining size."""
    data, sizes = op.inputs[0], op.ints("newshape")
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        op.invalid("leaves more than one size open", "newshape")
    return reshaped(op, data, _without_open(op, data, list(sizes)))


@table.register("_npx_reshape")
def npx_reshape(op: Operation) -> Value:
    """Reshape to ``newshape``, whose codes -1 to -6 refer to the input's axes.

    -1 is the remaining size, -2 copies a size, -3 skips a size of 1, -4 copies all further sizes,
    -5 merges two axes, -6 splits one into the two numbers that follow. With ``reverse`` axes are
    matched from the right.
    """
    data, codes = op.inputs[0], op.ints("newshape")
    decoder = decode_reversed if op.bool("reverse", False) else decode
    rank = op.rank_of(data)
    try:
        dims = decoder(codes, data.shape or (), rank, NUMPY)
    except ValueError as error:
        open_sizes = data.shape is not None and None in data.shape
        (op.unsupported if open_sizes else op.invalid)(str(error), "newshape")
    return reshaped(op, data, _without_open(op, data, dims))


def _without_open(
    op: Operation, data: Value, dims: list[int | tuple[int, ...]]
) -> list[int | tuple[int, ...]]:
    """Compute the remaining size of an array without elements, which ONNX does not infer."""
    if -1 not in dims or data.shape is None or 0 not in data.shape:
        return dims
    shape = op.shape_of(data)
    sizes = [dim if isinstance(dim, int) else int(np.prod([shape[a] for a in dim])) for dim in dims]
    known = int(np.prod([size for size in sizes if size >= 0]))
    if known == 0:
        raise Misfit("no size follows for -1 in an array without elements")
    return [0 if size < 0 else size for size in sizes]


@table.register("_np_squeeze")
def squeeze(op: Operation) -> Value:
    """Drop axes of size 1: those of ``axis``, or all."""
    data, axes = op.inputs[0], squeezed_axes(op)
    return op.emit("Squeeze", data, axes) if axes else data


@table.register("_np_transpose")
def transpose(op: Operation) -> Value:
    """Permute the axes to the order ``axes``; reverse them if it is not given."""
    data, given = op.inputs[0], op.optional_ints("axes")
    rank = op.rank_of(data)
    if given is None:
        order = list(reversed(range(rank)))
    else:
        order = [op.axis(data, axis) for axis in given if axis is not None]
    if sorted(order) != list(range(rank)):
        op.invalid(f"is no order of {rank} axes", "axes")
    return op.emit("Transpose", data, perm=order) if rank else data


@table.register("_np_moveaxis")
def moveaxis(op: Operation) -> Value:
    """Move the axes ``source`` to the places ``destination``; the others keep their order."""
    data = op.inputs[0]
    source = [op.axis(data, axis) for axis in op.ints("source")]
    destination = [op.axis(data, axis) for axis in op.ints("destination")]
    if len(set(source)) != len(source) or len({*destination}) != len(source):
        op.invalid("must be as many different axes as destination", "source")
    order = [axis for axis in range(op.rank_of(data)) if axis not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return op.emit("Transpose", data, perm=order) if order else data


@table.register("_npi_broadcast_to")
def broadcast_to(op: Operation) -> Value:
    """Broadcast to ``shape``, in which -2 copies the size of the input's axis."""
    data, shape = op.inputs[0], op.ints("shape", ())
    lacking = len(shape) - op.rank_of(data)
    if lacking < 0:
        op.invalid("has fewer axes than the input", "shape")
    sizes = []
    for place, size in enumerate(shape):
        if size >= 0:
            own = data.shape[place - lacking] if data.shape and place >= lacking else None
            if own not in (None, 1, size):
                op.invalid(f"broadcasts no axis of {own} to {size}", "shape")
            sizes.append(vector(op, size))
        elif size == -2 and place >= lacking:
            sizes.append(extent(op, data, place - lacking))
        else:
            op.unsupported("leaves a size open", "shape")
    return op.emit("Expand", data, concatenated(op, sizes))


def _rolled(op: Operation, data: Value, shift: int, axis: int) -> Value:
    size = extent(op, data, axis)
    if size.constant is not None and not size.constant[0]:
        return data
    if size.constant is not None:
        begin = vector(op, -shift % int(size.constant[0]))
    else:
        begin = op.emit("Mod", [-shift], op.emit("Max", size, [1]))
    tail = op.emit("Slice", data, begin, [LAST], [axis])
    return op.emit("Concat", tail, op.emit("Slice", data, [0], begin, [axis]), axis=axis)


@table.register("_np_roll")
def roll(op: Operation) -> Value:
    """Shift elements by ``shift`` along each of ``axis``, or in the flattened array, cyclically."""
    data, shifts, given = op.inputs[0], op.ints("shift"), op.optional_ints("axis")
    if given is None:
        if len(shifts) != 1:
            op.invalid("must be one number without an axis", "shift")
        flat = _rolled(op, flattened(op, data), shifts[0], 0)
        return op.emit(
            "Reshape", flat, gathered_shape(op, data, range(op.rank_of(data))), allowzero=1
        )
    axes = [op.axis(data, axis) for axis in given if axis is not None]
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        op.invalid("differs in length from axis", "shift")
    for shift, axis in zip(shifts, axes, strict=True):
        data = _rolled(op, data, shift, axis)
    return data


def _reversed(op: Operation, data: Value, *axes: int) -> Value:
    if not axes:
        return data
    count = len(axes)
    bounds = ([-1] * count, [np.iinfo(np.int64).min] * count, axes, [-1] * count)
    return op.emit("Slice", data, *(vector(op, *numbers) for numbers in bounds))


@table.register("_npi_flip")
def flip(op: Operation) -> Value:
    """Reverse the order along each of ``axis``, along all for ``None``."""
    data = op.inputs[0]
    rank = op.rank_of(data)
    axes = range(rank) if op.attr("axis") == "None" else op.ints("axis")
    return _reversed(op, data, *(op.axis(data, axis) for axis in axes))


@table.register("_npi_rot90")
def rot90(op: Operation) -> Value:
    """Rotate by ``k`` quarter turns from the first of ``axes`` to the second."""
    data, turns = op.inputs[0], op.int("k", 1) % 4
    first, second = (op.axis(data, axis) for axis in op.counted("axes", 2))
    if first == second:
        op.invalid("lists an axis twice", "axes")
    if turns == 0:
        return data
    if turns == 2:
        return _reversed(op, data, first, second)
    order = list(range(op.rank_of(data)))
    order[first], order[second] = second, first
    if turns == 1:
        return op.emit("Transpose", _reversed(op, data, second), perm=order)
    return _reversed(op, op.emit("Transpose", data, perm=order), second)
