"""Diagonals and triangles: of matrices, of pairs of axes, and made from vectors."""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import concatenated, extent, flattened, places, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.diagonal import diagonal_line, on_diagonal
from passlib.mxnet.lowering.tensors.reduce import reduced


def _extracted(op: Operation, data: Value, offset: int, first: int, second: int) -> Value:
    """Extract diagonal ``offset`` of two axes as the last axis; it may be empty."""
    first, second = op.axis(data, first), op.axis(data, second)
    if first == second:
        op.invalid("is the same axis as axis1", "axis2")
    others = [axis for axis in range(op.rank_of(data)) if axis not in (first, second)]
    turned = op.emit("Transpose", data, perm=[*others, first, second])
    return diagonal_line(op, turned, offset)


@table.register("_np_diag")
def diag(op: Operation) -> Value:
    """Make a matrix with a vector on diagonal ``k``, or extract that diagonal of a matrix."""
    data, k = op.inputs[0], op.int("k", 0)
    if op.rank_of(data) == 1:
        return on_diagonal(op, data, k)
    op.require_rank(data, 2)
    return _extracted(op, data, k, 0, 1)


@table.register("_np_diagflat")
def diagflat(op: Operation) -> Value:
    """Make a matrix with the elements of an array on diagonal ``k``."""
    return on_diagonal(op, flattened(op, op.inputs[0]), op.int("k", 0))


@table.register("_np_diagonal")
def diagonal(op: Operation) -> Value:
    """Extract diagonal ``offset`` of ``axis1`` and ``axis2`` as the last axis."""
    axes = op.int("axis1", 0), op.int("axis2", 1)
    return _extracted(op, op.inputs[0], op.int("offset", 0), *axes)


@table.register("_np_trace")
def trace(op: Operation) -> Value:
    """Sum diagonal ``offset`` of ``axis1`` and ``axis2``; 0 if it is empty."""
    axes = op.int("axis1", 0), op.int("axis2", 1)
    line = _extracted(op, op.inputs[0], op.int("offset", 0), *axes)
    if line.shape is not None and line.shape[-1] == 0:
        sizes = op.shape_of(line)[:-1]
        return op.emit("Expand", op.constant_like(0, line), vector(op, *sizes))
    last = op.rank_of(line) - 1
    return op.emit("Squeeze", reduced("ReduceSum", op, line, [last]), vector(op, last))


@table.register("_npi_tril")
def tril(op: Operation) -> Value:
    """Keep the elements up to diagonal ``k`` of each matrix; a vector (n,) makes rows (n, n)."""
    data = op.inputs[0]
    if op.rank_of(data) == 1:
        size = extent(op, data, 0)
        data = op.emit("Expand", data, concatenated(op, [size, size]))
    if data.shape is not None and 0 in data.shape:
        return data
    return op.emit("Trilu", data, op.constant(op.int("k", 0), np.int64), upper=0)


@table.register("_npi_diag_indices_from")
def diag_indices_from(op: Operation) -> Value:
    """Return the positions (rank, n) of the main diagonal of an array with axes of one size."""
    data = op.inputs[0]
    op.require_rank(data, least=2)
    rank = op.rank_of(data)
    if len({*(data.shape or ())} - {None}) > 1:
        raise Misfit("all axes must have one size")
    line = op.emit("Unsqueeze", places(op, data, 0), vector(op, 0))
    return op.emit("Tile", line, vector(op, rank, 1))
