"""New shapes for the same elements: reshape and the like, transposition."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import concatenated, extent, flattened, reshaped, vector
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.reshape_codes import Dim, decode, decode_reversed


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
    axis = op.axis(data, op.int("axis"), extra=1)
    return op.emit("Unsqueeze", data, vector(op, axis))


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
    return op.emit("Squeeze", data, vector(op, *axes)) if axes else data


@table.register("transpose")
def transpose(op: Operation) -> Value:
    """Permute the axes to the order ``axes``; reverse them if it is not given.

    An axis may repeat and another one be left out: an element is then where the strides of the
    axes lead, as in MXNet.
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
    return op.emit("Reshape", op.emit("Size", data), vector(op, 1))
