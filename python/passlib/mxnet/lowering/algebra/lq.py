"""The LQ factorization, by Householder reflections one row after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.algebra.matrix import transposed
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
        work, basis = (
            op.emit("Sub", each, op.emit("MatMul", _product(op, each, normal, factor), normal))
            for each in (work, basis)
        )
    lower = op.emit("Slice", work, vector(op, 0), vector(op, rows), vector(op, -1))
    lower = op.emit("Trilu", lower, upper=0)
    kept = op.emit("Slice", basis, vector(op, 0), vector(op, rows), vector(op, -1))
    return transposed(op, kept), lower


def _square(op: Operation, data: Value, columns: int) -> Value:
    return vector(op, *op.shape_of(data)[:-2], columns, columns)


def _reflection(op: Operation, work: Value, place: int) -> tuple[Value, Value]:
    """Return the normal (..., 1, n) of a reflection, and its factor 2 / |normal| ** 2 or 0."""
    columns = op.shape_of(work)[-1]
    row = op.emit("Slice", work, vector(op, place), vector(op, place + 1), vector(op, -2))
    axis = vector(op, -1)
    index = np.arange(columns)
    here = op.constant_like(index == place, work)
    rest = op.emit("Mul", row, op.constant_like(index >= place, work))
    tail = op.emit("Mul", row, op.constant_like(index > place, work))
    pivot = op.emit("ReduceSum", op.emit("Mul", row, here), axis, keepdims=1)
    zero = op.constant_like(0, work)
    length = op.emit("ReduceL2", rest, axis, keepdims=1)
    negative = op.emit("Less", pivot, zero)
    end = op.emit("Where", negative, length, op.emit("Neg", length))
    normal = op.emit("Sub", rest, op.emit("Mul", end, here))
    square = op.emit("ReduceSumSquare", normal, axis, keepdims=1)
    idle = op.emit("Equal", op.emit("ReduceSumSquare", tail, axis, keepdims=1), zero)
    safe = op.emit("Where", idle, op.constant_like(1, work), square)
    factor = op.emit("Div", op.constant_like(2, work), safe)
    return normal, op.emit("Where", idle, zero, factor)


def _product(op: Operation, matrix: Value, normal: Value, factor: Value) -> Value:
    """Multiply a matrix by a normal as a column, and by its factor."""
    return op.emit("Mul", op.emit("MatMul", matrix, transposed(op, normal)), factor)
