"""Gathering and scattering by index tuples, and conversion between these and flat indices."""

from __future__ import annotations

import math

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
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
    zeros = op.emit("Expand", op.constant_like(0, data), vector(op, *op.ints("shape")))
    return op.emit("ScatterND", zeros, _tuples_last(op, indices), data)


@table.register("_contrib_index_copy")
def index_copy(op: Operation) -> Value:
    """Replace the rows of the first input whose numbers are in the second by those of the third."""
    old, rows, new = op.operands(3)
    column = op.emit("Unsqueeze", op.cast(rows, np.int64), vector(op, 1))
    return op.emit("ScatterND", old, column, new)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


@table.register("_ravel_multi_index", "ravel_multi_index")
def ravel_multi_index(op: Operation) -> Value:
    """Turn indices (m, n) into an array of ``shape`` with m axes into flat ones (n,).

    The first size has no effect, so it may be -1.
    """
    tuples, shape = op.inputs[0], op.ints("shape")
    weights = op.constant(np.reshape(_strides(shape), (-1, 1)), np.int64)
    terms = op.emit("Mul", op.cast(tuples, np.int64), weights)
    flat = op.emit("ReduceSum", terms, vector(op, 0), keepdims=0)
    return op.cast(flat, op.dtype_of(tuples))


@table.register("_unravel_index", "unravel_index")
def unravel_index(op: Operation) -> Value:
    """Turn flat indices (n, ...) into an array of ``shape`` with m axes into indices (m, n, ...).

    MXNet's result for several axes has the wrong shape.
    """
    flat, shape = op.inputs[0], op.ints("shape")
    column = (-1, *[1] * op.rank_of(flat))
    row = op.emit("Unsqueeze", op.cast(flat, np.int64), vector(op, 0))
    strides = op.constant(np.reshape(_strides(shape), column), np.int64)
    steps = op.emit("Div", row, strides)
    # The first axis is unbounded, since its size may be -1.
    sizes = op.constant(np.reshape((np.iinfo(np.int64).max, *shape[1:]), column), np.int64)
    return op.cast(op.emit("Mod", steps, sizes), op.dtype_of(flat))
