"""Diagonals and triangles of matrices, extracted and created from vectors.

The shapes determine the position of each element, so most of these are a single Gather by a
constant table.
"""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import extent, places, reshaped, vector
from passlib.mxnet.lowering.table import table


def diagonal_mask(op: Operation, rows: int, columns: int, k: int) -> Value:
    """Return truth values (rows, columns), true on diagonal ``k``; computed at run time."""
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    row = op.emit("Range", zero, op.constant(rows, np.int64), one)
    column = op.emit("Range", zero, op.constant(columns, np.int64), one)
    return (op.emit("Unsqueeze", row, [1]) + k).equals(column)


def diagonal_line(op: Operation, matrices: Value, k: int) -> Value:
    """Extract diagonal ``k`` of matrices (..., r, c) as the last axis; it may be empty."""
    first = op.rank_of(matrices) - 2
    kept = [(axis,) for axis in range(first)]
    flat = reshaped(op, matrices, [*kept, (first, first + 1)])
    return op.emit("Gather", flat, _line_places(op, matrices, k), axis=-1)


def _line_places(op: Operation, matrices: Value, k: int) -> Value:
    """Return the flat positions of diagonal ``k``, int64, computed at run time if need be."""
    rank = op.rank_of(matrices)
    rows, columns = op.sizes_of(matrices)[-2:]
    if rows is not None and columns is not None:
        count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        begin = k if k >= 0 else -k * columns
        return op.constant(begin + np.arange(count) * (columns + 1), np.int64)
    height, width = (extent(op, matrices, axis) for axis in (rank - 2, rank - 1))
    ends = (height + vector(op, min(k, 0)), width - vector(op, max(k, 0)))
    length = op.emit("Max", op.emit("Min", *ends), [0])
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    numbers = op.emit("Range", zero, op.emit("Squeeze", length, [0]), one)
    start = vector(op, k) if k >= 0 else width * vector(op, -k)
    return start + numbers * (width + vector(op, 1))


def _gathered(op: Operation, data: Value, table_of_places: np.ndarray) -> Value:
    """Gather the elements of matrices (..., r, c) at flat places."""
    shape = op.shape_of(data, least=2)
    flat = op.emit("Reshape", data, [*shape[:-2], shape[-2] * shape[-1]])
    return op.emit("Gather", flat, op.constant(table_of_places, np.int64), axis=-1)


def _spread(op: Operation, data: Value, sources: np.ndarray) -> Value:
    """Create matrices with element ``sources[i, j]`` of the last axis at (i, j), 0 for -1."""
    shape = op.shape_of(data, least=1)
    zeros = op.emit("Expand", op.constant_like(0, data), [*shape[:-1], 1])
    extended = op.emit("Concat", data, zeros, axis=-1)
    table_of_places = np.where(sources < 0, shape[-1], sources)
    return op.emit("Gather", extended, op.constant(table_of_places, np.int64), axis=-1)


def _existing_line(op: Operation, matrices: Value, k: int) -> Value:
    """Extract diagonal ``k``; one just outside the matrix is empty, one beyond is an error."""
    op.require_rank(matrices, least=2)
    rows, columns = op.sizes_of(matrices)[-2:]
    if (rows is not None and k < -rows) or (columns is not None and k > columns):
        op.invalid(f"a matrix ({rows}, {columns}) has no diagonal {k}")
    return diagonal_line(op, matrices, k)


def on_diagonal(op: Operation, data: Value, k: int) -> Value:
    """Create square matrices with the last axis of ``data`` on diagonal ``k``, 0 elsewhere."""
    op.require_rank(data, least=1)
    zero = op.constant_like(0, data)
    widths = vector(op, 0, abs(k))
    longer = op.emit("Pad", data, widths, zero, [-1]) if k else data
    # Above the main diagonal the row is the position in the vector, below it the column.
    spread = op.emit("Unsqueeze", longer, [-1 if k >= 0 else -2])
    place = places(op, longer, op.rank_of(longer) - 1)
    return op.where(op.emit("Unsqueeze", place + k, [1]).equals(place), spread, zero)


@table.register("diag")
def diag(op: Operation) -> Value:
    """Extract diagonal ``k`` of ``axis1`` and ``axis2`` as the last axis.

    An input with one axis becomes diagonal ``k`` of a square matrix.
    """
    data, k = op.inputs[0], op.int("k", 0)
    rank = op.rank_of(data)
    if rank == 1:
        return on_diagonal(op, data, k)
    first, second = op.axis(data, op.int("axis1", 0)), op.axis(data, op.int("axis2", 1))
    if first == second:
        op.invalid("is the same axis as axis1", "axis2")
    others = [axis for axis in range(rank) if axis not in (first, second)]
    return _existing_line(op, op.emit("Transpose", data, perm=[*others, first, second]), k)


@table.register("_linalg_extractdiag", "linalg_extractdiag")
def extractdiag(op: Operation) -> Value:
    """Extract diagonal ``offset`` of each square matrix: (..., n, n) to (..., n - |offset|)."""
    return _existing_line(op, op.inputs[0], op.int("offset", 0))


@table.register("_linalg_makediag", "linalg_makediag")
def makediag(op: Operation) -> Value:
    """Create square matrices with (..., n) as diagonal ``offset``, 0 elsewhere."""
    data = op.inputs[0]
    return on_diagonal(op, data, op.int("offset", 0))


def _triangle(op: Operation, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the triangle that ``offset`` and ``lower`` select.

    MXNet orders a lower triangle row by row, an upper one column by column.
    """
    offset = op.int("offset", 0)
    lower = offset < 0 or (offset == 0 and op.bool("lower", True))
    if lower:
        return np.tril_indices(size, offset)
    columns, rows = np.tril_indices(size, -offset)
    return rows, columns


@table.register("_linalg_extracttrian", "linalg_extracttrian")
def extracttrian(op: Operation) -> Value:
    """Extract a triangle of each square matrix (..., n, n) as a vector.

    A lower triangle is ordered row by row, an upper one column by column. It ends at diagonal
    ``offset``: upper if that is positive, lower if negative; for 0 ``lower`` decides.
    """
    data = op.inputs[0]
    size = op.shape_of(data, least=1)[-1]
    rows, columns = _triangle(op, size)
    if not rows.size:
        op.invalid("leaves no element", "offset")
    return _gathered(op, data, rows * size + columns)


@table.register("_linalg_maketrian", "linalg_maketrian")
def maketrian(op: Operation) -> Value:
    """Create square matrices from triangles (..., n (n + 1) / 2), the inverse of `extracttrian`."""
    data = op.inputs[0]
    count = op.shape_of(data, least=1)[-1]
    side = int((np.sqrt(8 * count + 1) - 1) / 2)
    if side * (side + 1) // 2 != count:
        op.invalid(f"{count} elements fill no triangle")
    size = side + abs(op.int("offset", 0))
    sources = np.full((size, size), -1)
    sources[_triangle(op, size)] = np.arange(count)
    return _spread(op, data, sources)


@table.register("_linalg_sumlogdiag", "linalg_sumlogdiag")
def sumlogdiag(op: Operation) -> Value:
    """Sum the logarithms of the main diagonal of each matrix (..., n, n), shape (...)."""
    data = op.inputs[0]
    diagonal = _existing_line(op, data, 0)
    keepdims = int(op.rank_of(data) == 2)
    return op.emit("ReduceSum", op.emit("Log", diagonal), [-1], keepdims=keepdims)
