"""Systems of linear equations as NumPy defines them."""

from __future__ import annotations

import math

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import numbers_or_none, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.algebra.factorization import inverted, potrf, solution
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.lowering.table import table


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
    return op.emit("Reshape", value, vector(op, *sizes), allowzero=1)


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
    columns = op.emit("Unsqueeze", right, vector(op, -1)) if is_vector else right
    sizes = (matrix.shape or ())[:-1], (columns.shape or ())[:-1]
    if len(sizes[0]) != len(sizes[1]) or any(
        one != other and None not in (one, other) for one, other in zip(*sizes, strict=True)
    ):
        raise Misfit("A and B differ in their batches or rows")
    if 0 in (*(matrix.shape or ()), *(right.shape or ())):
        return right
    result = solution(op, matrix, columns)
    return op.emit("Squeeze", result, vector(op, -1)) if is_vector else result


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
