"""Matrix products of every kind."""

from __future__ import annotations

from passlib.lowering import Operation, Value
from passlib.lowering.contraction import dot
from passlib.lowering.extents import reshaped, vector
from passlib.mxnet.lowering.table import table


def transposed(op: Operation, value: Value) -> Value:
    """Transpose each matrix: exchange the last two axes."""
    op.require_rank(value, least=2)
    order = list(range(op.rank_of(value)))
    order[-2:] = reversed(order[-2:])
    return op.emit("Transpose", value, perm=order)


def _scaled(op: Operation, value: Value, name: str) -> Value:
    factor = op.float(name, 1.0)
    return value if factor == 1 else op.emit("Mul", value, op.constant_like(factor, value))


table.register("dot")(dot)


@table.register("batch_dot", "_npx_batch_dot")
def batch_dot(op: Operation) -> Value:
    """Multiply each pair of matrices (n, r, k) and (n, k, c), either of them transposed."""
    left, right = op.operands(2)
    return _product(op, left, right)


def _product(op: Operation, left: Value, right: Value) -> Value:
    if op.bool("transpose_a", False):
        left = transposed(op, left)
    if op.bool("transpose_b", False):
        right = transposed(op, right)
    return op.emit("MatMul", left, right)


def _rows_to(op: Operation, value: Value, source: int, target: int) -> Value:
    """Move one axis to another position."""
    rank = op.rank_of(value)
    source, target = op.axis(value, source), op.axis(value, target)
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return value if source == target else op.emit("Transpose", value, perm=order)


def _general_product(op: Operation, *, has_sum: bool) -> Value:
    axis = op.int("axis", -2)
    operands = op.operands(3 if has_sum else 2)
    left, right, *summand = (_rows_to(op, value, axis, -2) for value in operands)
    result = _scaled(op, _product(op, left, right), "alpha")
    if has_sum:
        result = op.emit("Add", result, _scaled(op, summand[0], "beta"))
    return _rows_to(op, result, -2, axis)


@table.register("_linalg_gemm", "linalg_gemm")
def gemm(op: Operation) -> Value:
    """Compute ``alpha`` A B + ``beta`` C; rows are in ``axis``, columns in the last axis."""
    return _general_product(op, has_sum=True)


@table.register("_linalg_gemm2", "linalg_gemm2")
def gemm2(op: Operation) -> Value:
    """Compute ``alpha`` A B; rows are in ``axis``, columns in the last axis."""
    return _general_product(op, has_sum=False)


@table.register("_linalg_syrk", "linalg_syrk")
def syrk(op: Operation) -> Value:
    """Compute ``alpha`` A A', or with ``transpose`` ``alpha`` A' A."""
    matrix = op.inputs[0]
    pair = (matrix, transposed(op, matrix))
    if op.bool("transpose", False):
        pair = pair[::-1]
    return _scaled(op, op.emit("MatMul", *pair), "alpha")


@table.register("_linalg_trmm", "linalg_trmm")
def trmm(op: Operation) -> Value:
    """Compute ``alpha`` A B for a triangular A, or with ``rightside`` ``alpha`` B A.

    Elements of A outside the triangle are ignored.
    """
    triangle = op.emit("Trilu", op.inputs[0], upper=int(not op.bool("lower", True)))
    if op.bool("transpose", False):
        triangle = transposed(op, triangle)
    pair = (triangle, op.inputs[1])
    if op.bool("rightside", False):
        pair = pair[::-1]
    return _scaled(op, op.emit("MatMul", *pair), "alpha")


@table.register("khatri_rao")
def khatri_rao(op: Operation) -> Value:
    """Compute the columnwise outer product: matrices (m_i, n) to (m_1 m_2 ..., n)."""
    for matrix in op.inputs:
        op.require_rank(matrix, 2)
    result = op.inputs[0]
    for matrix in op.inputs[1:]:
        raised = op.emit("Unsqueeze", result, vector(op, 1))
        product = op.emit("Mul", raised, op.emit("Unsqueeze", matrix, vector(op, 0)))
        result = reshaped(op, product, [(0, 1), (2,)])
    return result
