"""Systems of linear equations as NumPy defines them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import gathered_shape, numbers_or_none, reshaped, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.algebra.products import transposed
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.lowering.table import table

_MOST_ROWS = 64


@table.register("_linalg_gelqf", "linalg_gelqf")
def gelqf(op: Operation) -> Sequence[Value]:
    """Factorize A (..., m, n), m <= n, into orthonormal rows Q (..., m, n) and L (..., m, m).

    The signs are those of LAPACK: a reflection makes the diagonal element of L opposite in sign
    to the first element of the remaining row, and is left out where nothing follows that element.
    """
    (data,) = op.operands(1)
    *_, rows, columns = op.shape_of(data, least=2)
    if not 0 < rows <= columns or rows > _MOST_ROWS:
        op.unsupported(f"needs 1 to {_MOST_ROWS} rows, and as many columns or more")
    unit = np.eye(columns)
    work, basis = data, op.emit("Expand", op.constant_like(unit, data), _square(op, data, columns))
    for place in range(rows):
        normal, factor = _reflection(op, work, place)
        work, basis = (each - _product(op, each, normal, factor) @ normal for each in (work, basis))
    lower = op.emit("Slice", work, [0], [rows], [-1])
    lower = op.emit("Trilu", lower, upper=0)
    return transposed(op, op.emit("Slice", basis, [0], [rows], [-1])), lower


def _square(op: Operation, data: Value, columns: int) -> Value:
    return vector(op, *op.shape_of(data)[:-2], columns, columns)


def _reflection(op: Operation, work: Value, place: int) -> tuple[Value, Value]:
    """Return the normal (..., 1, n) of a reflection, and its factor 2 / |normal| ** 2 or 0."""
    columns = op.shape_of(work)[-1]
    row = op.emit("Slice", work, [place], [place + 1], [-2])
    axis = vector(op, -1)
    index = np.arange(columns)
    here = op.constant_like(index == place, work)
    rest = row * (index >= place)
    tail = row * (index > place)
    pivot = op.emit("ReduceSum", row * here, axis, keepdims=1)
    zero = op.constant_like(0, work)
    length = op.emit("ReduceL2", rest, axis, keepdims=1)
    normal = rest - op.where(pivot < zero, length, -length) * here
    square = op.emit("ReduceSumSquare", normal, axis, keepdims=1)
    idle = op.emit("ReduceSumSquare", tail, axis, keepdims=1).equals(zero)
    return normal, op.where(idle, zero, 2 / op.where(idle, 1, square))


def _product(op: Operation, matrix: Value, normal: Value, factor: Value) -> Value:
    """Multiply a matrix by a normal as a column, and by its factor."""
    return matrix @ transposed(op, normal) * factor


_MOST_FACTORED = 64
"""Larger matrices would require thousands of nodes."""


def _side(op: Operation, matrix: Value) -> int:
    op.require_rank(matrix, least=2)
    rows, columns = (op.size_of(matrix, axis) for axis in (-2, -1))
    if rows != columns:
        op.invalid(f"requires square matrices, not ({rows}, {columns})")
    return rows


def _size(op: Operation, matrix: Value) -> int:
    """Return the number of rows, if it and the element type suit the algorithms below."""
    rows = _side(op, matrix)
    if rows > _MOST_FACTORED:
        op.unsupported(f"is unrolled for at most {_MOST_FACTORED} rows, not {rows}")
    if op.dtype_of(matrix) not in (np.float32, np.float64):
        op.unsupported(f"is defined for float32 and float64, not for {op.dtype_of(matrix)}")
    return rows


def _shape(op: Operation, value: Value) -> Value:
    return gathered_shape(op, value, range(op.rank_of(value)))


def _part(op: Operation, matrix: Value, axis: int, start: int, stop: int) -> Value:
    return op.emit("Slice", matrix, [start], [stop], [axis])


def _block(op: Operation, matrix: Value, rows: range, columns: range) -> Value:
    band = _part(op, matrix, -2, rows.start, rows.stop)
    return _part(op, band, -1, columns.start, columns.stop)


def _solved(op: Operation, triangle: Value, right: Value, *, lower: bool) -> Value:
    """Solve triangle X = right by substitution, row by row."""
    size = _size(op, triangle)
    order: Iterable[int] = range(size) if lower else reversed(range(size))
    solved: Value | None = None
    for row in order:
        one = range(row, row + 1)
        line = _part(op, right, -2, row, row + 1)
        if solved is not None:
            before = range(row) if lower else range(row + 1, size)
            line = line - _block(op, triangle, one, before) @ solved
        line = line / _block(op, triangle, one, one)
        if solved is None:
            solved = line
        else:
            pair = (solved, line) if lower else (line, solved)
            solved = op.emit("Concat", *pair, axis=-2)
    if solved is None:
        op.unsupported("the matrices have no rows")
    return solved


@table.register("_linalg_trsm", "linalg_trsm")
def trsm(op: Operation) -> Value:
    """Solve A X = ``alpha`` B for a triangular A, or with ``rightside`` X A = ``alpha`` B.

    ``transpose`` uses A' instead of A; ``lower`` selects the triangle of A that counts.
    """
    triangle, right = op.operands(2)
    alpha = op.float("alpha", 1.0)
    if alpha != 1:
        right = right * alpha
    lower = op.bool("lower", True)
    rightside = op.bool("rightside", False)
    # X A = B is A' X' = B', so one of the two transpositions cancels the other.
    if op.bool("transpose", False) != rightside:
        triangle, lower = transposed(op, triangle), not lower
    if not rightside:
        return _solved(op, triangle, right, lower=lower)
    return transposed(op, _solved(op, triangle, transposed(op, right), lower=lower))


@table.register("_linalg_potrf", "linalg_potrf")
def potrf(op: Operation) -> Value:
    """Compute the Cholesky factor of a positive definite A.

    It is L of A = L L', read from the lower half of A, or without ``lower`` U of A = U' U, read
    from the upper half.
    """
    if op.bool("lower", True):
        return _cholesky(op, op.inputs[0])
    return transposed(op, _cholesky(op, transposed(op, op.inputs[0])))


def _cholesky(op: Operation, matrix: Value) -> Value:
    size = _size(op, matrix)
    factor: Value | None = None
    for step in range(size):
        below, before = range(step, size), range(step)
        column = _block(op, matrix, below, range(step, step + 1))
        if factor is not None:
            left = _block(op, factor, below, before)
            right = transposed(op, _block(op, factor, range(step, step + 1), before))
            column = column - left @ right
        column = column / op.emit("Sqrt", _part(op, column, -2, 0, 1))
        if step:
            column = op.emit("Pad", column, [step, 0], 0, [-2])
        factor = column if factor is None else op.emit("Concat", factor, column, axis=-1)
    if factor is None:
        op.unsupported("the matrices have no rows")
    return factor


@table.register("_linalg_potri", "linalg_potri")
def potri(op: Operation) -> Value:
    """Compute the inverse of L L' for a lower triangular L; without ``lower`` of U' U."""
    triangle = op.inputs[0]
    if not op.bool("lower", True):
        triangle = transposed(op, triangle)
    unit = op.constant_like(np.eye(_size(op, triangle)), triangle)
    inverted = _solved(op, triangle, op.emit("Expand", unit, _shape(op, triangle)), lower=True)
    return transposed(op, inverted) @ inverted


class _Elimination(NamedTuple):
    """Matrices (b, n, m) that begin with the identity; pivots and row exchanges (b, 1, 1)."""

    matrix: Value
    pivots: list[Value]
    exchanges: list[Value]


def _eliminated(op: Operation, matrix: Value, size: int, *, guarded: bool) -> _Elimination:
    """Apply Gauss-Jordan elimination with partial pivoting.

    ``guarded`` divides by 1 instead of a pivot of 0, so that later pivots stay finite.
    """
    pivots, exchanges = [], []
    shape = _shape(op, matrix)
    rows = op.constant(np.arange(size).reshape(1, size, 1), np.int64)
    for step in range(size):
        here = op.constant(step, np.int64)
        candidates = op.emit("Abs", _block(op, matrix, range(step, size), range(step, step + 1)))
        place = op.emit("ArgMax", candidates, axis=1, keepdims=1)
        place = place + here
        exchanges.append(~place.equals(here))
        order = op.where(rows.equals(place), here, rows)
        is_here = rows.equals(here)
        order = op.where(is_here, place, order)
        order = op.emit("Expand", order, shape)
        matrix = op.emit("GatherElements", matrix, order, axis=1)
        line = _part(op, matrix, 1, step, step + 1)
        pivot = _part(op, line, 2, step, step + 1)
        pivots.append(pivot)
        if guarded:
            pivot = op.where(pivot.equals(0), 1, pivot)
        line = line / pivot
        matrix = op.where(is_here, line, matrix - _part(op, matrix, 2, step, step + 1) * line)
    return _Elimination(matrix, pivots, exchanges)


def solution(op: Operation, matrix: Value, right: Value) -> Value:
    """Solve A X = B by elimination for A (..., n, n) and B (..., n, m) with equal batches.

    A singular matrix results in infinities and NaN.
    """
    size = _size(op, matrix)
    shape, columns = _shape(op, right), op.size_of(right, -1)
    matrix = reshaped(op, matrix, [-1, size, size])
    right = reshaped(op, right, [-1, size, columns])
    pair = op.emit("Concat", matrix, right, axis=2)
    eliminated = _eliminated(op, pair, size, guarded=False).matrix
    return op.emit("Reshape", _part(op, eliminated, 2, size, size + columns), shape)


def inverted(op: Operation, matrix: Value) -> Value:
    """Invert each matrix (..., n, n)."""
    shape = _shape(op, matrix)
    unit = op.constant_like(np.eye(_size(op, matrix)), matrix)
    return solution(op, matrix, op.emit("Expand", unit, shape))


@table.register("_linalg_inverse", "linalg_inverse", "_npi_inv")
def inverse(op: Operation) -> Value:
    """Invert each matrix; a singular one results in infinities and NaN."""
    return inverted(op, op.inputs[0])


def _pivots(op: Operation) -> tuple[Value, Value]:
    """Return the pivots and the sign of the row exchanges of each matrix: (b, n) and (b, 1)."""
    original = op.inputs[0]
    size = _size(op, original)
    result = _eliminated(op, reshaped(op, original, [-1, size, size]), size, guarded=True)
    pivots = op.emit("Concat", *result.pivots, axis=1)
    exchanged = op.emit("Concat", *result.exchanges, axis=1)
    minus, plus = op.constant_like(-1, pivots), op.constant_like(1, pivots)
    sign = op.emit("ReduceProd", op.where(exchanged, minus, plus), [1], keepdims=0)
    return op.emit("Squeeze", pivots, [2]), sign


def _one_each(op: Operation, value: Value, lone: Sequence[int]) -> Value:
    """Reshape one number for each matrix to the batch; to ``lone`` for a single matrix."""
    matrices = op.inputs[0]
    batch = range(op.rank_of(matrices) - 2)
    shape = gathered_shape(op, matrices, batch) if batch else vector(op, *lone)
    return op.emit("Reshape", value, shape)


def _product_of_pivots(op: Operation, pivots: Value, sign: Value) -> Value:
    return op.emit("ReduceProd", pivots, [1], keepdims=1) * sign


def det(lone: Sequence[int], op: Operation) -> Value:
    """Compute the determinant of each matrix: (..., n, n) to (...), a single one to ``lone``."""
    if _side(op, op.inputs[0]) and op.dtype_of(op.inputs[0]) == np.float32:
        return _one_each(op, op.emit("Det", op.inputs[0]), lone)
    return _one_each(op, _product_of_pivots(op, *_pivots(op)), lone)


def slogdet(lone: Sequence[int], op: Operation) -> tuple[Value, Value]:
    """Return sign and log absolute value of the determinant: 0 and -inf for singular matrices."""
    pivots, sign = _pivots(op)
    total = _product_of_pivots(op, op.emit("Sign", pivots), sign)
    size = op.emit("ReduceSum", op.emit("Log", op.emit("Abs", pivots)), [1], keepdims=1)
    return _one_each(op, total, lone), _one_each(op, size, lone)


for _names, _lone in ((("_linalg_{}", "linalg_{}"), (1,)), (("_npi_{}",), ())):
    table.register(*(name.format("det") for name in _names))(partial(det, _lone))
    table.register(*(name.format("slogdet") for name in _names))(partial(slogdet, _lone))


def _in_reals(op: Operation, value: Value) -> Value:
    """Return integers as float64, in which MXNet solves."""
    return value if is_real(op.dtype_of(value)) else op.cast(value, np.float64)


def _both_in_reals(op: Operation) -> list[Value]:
    """Return the two inputs in one type: as float64 unless they have the same one."""
    both = [_in_reals(op, value) for value in op.operands(2)]
    if op.dtype_of(both[0]) == op.dtype_of(both[1]):
        return both
    return [op.cast(value, np.float64) for value in both]


def _as(op: Operation, value: Value, *sizes: int) -> Value:
    return op.emit("Reshape", value, sizes, allowzero=1)


@table.register("_npi_cholesky")
def cholesky(op: Operation) -> Value:
    """Compute the lower triangular L of A = L L', or without ``lower`` U of A = U' U."""
    matrix = op.inputs[0]
    return matrix if 0 in (matrix.shape or ()) else potrf(op)


@table.register("_npi_solve")
def solve(op: Operation) -> Value:
    """Solve A X = B for matrices A (..., n, n) and B (..., n, m), or a vector B (..., n)."""
    matrix, right = _both_in_reals(op)
    op.require_rank(matrix, least=2)
    is_vector = op.rank_of(right) < op.rank_of(matrix)
    columns = op.emit("Unsqueeze", right, [-1]) if is_vector else right
    sizes = (matrix.shape or ())[:-1], (columns.shape or ())[:-1]
    if len(sizes[0]) != len(sizes[1]) or any(
        one != other and None not in (one, other) for one, other in zip(*sizes, strict=True)
    ):
        raise Misfit("A and B differ in their batches or rows")
    if 0 in (*(matrix.shape or ()), *(right.shape or ())):
        return right
    result = solution(op, matrix, columns)
    return op.emit("Squeeze", result, [-1]) if is_vector else result


@table.register("_npi_tensorinv")
def tensorinv(op: Operation) -> Value:
    """Invert the matrix of the first ``ind`` axes and the others, which change places."""
    data, count = op.inputs[0], op.int("ind", 2)
    shape = op.shape_of(data)
    if not 0 < count < len(shape) or math.prod(shape[:count]) != math.prod(shape[count:]):
        op.invalid("does not divide the axes into two of equal size", "ind")
    side = math.prod(shape[:count])
    matrix = _as(op, _in_reals(op, data), side, side)
    return _as(op, inverted(op, matrix), *shape[count:], *shape[:count])


@table.register("_npi_tensorsolve")
def tensorsolve(op: Operation) -> Value:
    """Solve A X = B, where the last axes of A are those of X; ``a_axes`` are moved there first."""
    data, right = _both_in_reals(op)
    moved = [op.axis(data, axis) for axis in numbers_or_none(op, "a_axes")]
    order = [axis for axis in range(op.rank_of(data)) if axis not in moved] + moved
    data = op.emit("Transpose", data, perm=order)
    shape, side = op.shape_of(data), math.prod(op.shape_of(right))
    unknown = shape[op.rank_of(right) :]
    if math.prod(unknown) != side or math.prod(shape) != side**2:
        raise Misfit("the axes of A do not form a square matrix")
    if not side:
        return op.constant(np.zeros(unknown, op.dtype_of(data)))
    matrix, column = _as(op, data, side, side), _as(op, right, side, 1)
    return _as(op, solution(op, matrix, column), *unknown)
