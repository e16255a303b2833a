"""Positions of extremes, and sums that undo broadcasting. Other reductions are MXNet's."""

from __future__ import annotations

import math

import numpy as np

from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, vector


@table.register("argmax")
def argmax(op: Operation) -> Value:
    """Find the first position of the largest element, in element type ``dtype``, by default int32.

    The position is along ``axis``, or in the flattened data with a result of shape (1,).
    """
    return _position(op, "ArgMax")


@table.register("argmin")
def argmin(op: Operation) -> Value:
    """Find the first position of the smallest element, like `argmax`."""
    return _position(op, "ArgMin")


def _position(op: Operation, operator: str) -> Value:
    data, axes = op.inputs[0], op.ints("axis", ())
    if op.bool("exclude", False):
        named = {op.axis(data, axis) for axis in axes}
        axes = tuple(axis for axis in range(op.rank_of(data)) if axis not in named)
    if len(axes) > 1:
        op.unsupported("a position along several axes is undefined", "axis")
    keep = op.bool("keepdims", False)
    dtype = op.dtype("dtype", np.dtype(np.int32)) or np.dtype(np.int32)
    if axes:
        axis = op.axis(data, axes[0])
        alone = op.rank_of(data) == 1
        found = op.emit(operator, data, axis=axis, keepdims=int(keep or alone))
    else:
        found = op.emit(operator, flattened(op, data), axis=0, keepdims=1)
        if keep:
            found = op.emit("Reshape", found, vector(op, *[1] * op.rank_of(data)))
    return op.cast(found, dtype)


@table.register("collapse_sum")
def collapse_sum(op: Operation) -> Value:
    """Sum the data to the shape of the second input, which broadcasts to that of the data."""
    data, like = op.operands(2)
    sizes, wanted = op.shape_of(data), op.shape_of(like)
    lead = len(sizes) - len(wanted)
    if lead < 0:
        op.unsupported("the second input has more axes than the first")
    stretched = [lead + i for i, size in enumerate(wanted) if size == 1 and sizes[lead + i] != 1]
    axes = [*range(lead), *stretched]
    if not axes:
        return op.emit("Identity", data)
    total = op.emit("ReduceSum", data, vector(op, *axes), keepdims=1)
    return op.emit("Reshape", total, vector(op, *wanted)) if lead else total


@table.register("expand_like")
def expand_like(op: Operation) -> Value:
    """Broadcast a reduced array to the shape of the second input.

    The reduced axes are ``axis``, or all others with ``exclude``, or all axes if none is given.
    An array with as many axes as the second input is only broadcast.
    """
    data, like = op.operands(2)
    rank = op.rank_of(like)
    if op.rank_of(data) == rank:
        return op.emit("Expand", data, op.emit("Shape", like))
    named = {op.axis(like, axis) for axis in op.ints("axis", ())}
    axes = set(range(rank)) - named if op.bool("exclude", False) or not named else named
    sizes = op.shape_of(like)
    kept = [1 if axis in axes else size for axis, size in enumerate(sizes)]
    if math.prod(op.shape_of(data)) != math.prod(kept):
        op.unsupported(f"the shape {op.shape_of(data)} is not {sizes} without these axes", "axis")
    return op.emit("Expand", op.emit("Reshape", data, vector(op, *kept)), vector(op, *sizes))
