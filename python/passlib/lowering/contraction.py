"""Products of arrays that sum over one axis of each."""

from __future__ import annotations

from passlib.lowering.extents import extent, reshaped, reshaped_to, vector
from passlib.lowering.operation import Operation
from passlib.lowering.types import Value


def dot(op: Operation) -> Value:
    """Sum over the last axis of the first input and the first axis of the second.

    Attribute ``transpose_a`` sums over the first axis of the first input instead, ``transpose_b``
    over the last of the second; a vector stays as it is next to a matrix. Two vectors result in
    shape (1,). Raises `GraphError` if one of two vectors would be transposed.
    """
    left, right = op.operands(2)
    is_row, is_column = op.rank_of(left) == 1, op.rank_of(right) == 1
    for flag in ("transpose_a", "transpose_b"):
        if is_row and is_column and op.bool(flag, False):
            op.invalid("a vector has no transpose", flag)
    turns = (
        not is_row and op.bool("transpose_a", False),
        not is_column and op.bool("transpose_b", False),
    )
    # Vectors become matrices: ONNX Runtime 1.31 computes the product of a transposed matrix and
    # a vector wrongly where it fuses the two.
    if is_row:
        left = op.emit("Unsqueeze", left, vector(op, 0))
    if is_column:
        right = op.emit("Unsqueeze", right, vector(op, 1))
    product = _contracted(op, left, right, turns)
    if is_column:
        return op.emit("Squeeze", product, vector(op, -1))
    return op.emit("Squeeze", product, vector(op, 0)) if is_row else product


def _contracted(op: Operation, left: Value, right: Value, turns: tuple[bool, bool]) -> Value:
    for value in (left, right):
        op.require_rank(value, least=2)
    rank, other_rank = op.rank_of(left), op.rank_of(right)
    if turns[0]:
        left = op.emit("Transpose", left, perm=[*range(1, rank), 0])
    if turns[1]:
        right = op.emit("Transpose", right, perm=[other_rank - 1, *range(other_rank - 1)])
    if other_rank == 2:
        return op.emit("MatMul", left, right)
    flat = reshaped(op, right, [(0,), tuple(range(1, other_rank))])
    product = op.emit("MatMul", left, flat)
    sizes = [extent(op, left, axis) for axis in range(op.rank_of(left) - 1)]
    sizes += [extent(op, right, axis) for axis in range(1, other_rank)]
    return reshaped_to(op, product, sizes)
