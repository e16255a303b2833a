"""Products of matrices."""

from __future__ import annotations

from passlib.dialects.ark.lowering.table import TABLE, fit, reshape
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("Matmul")
def matmul(operation: Operation) -> Value:
    """Multiply the last two dimensions; the leading ones broadcast.

    A vector on the left is one row, one on the right one column; it has nothing to transpose.
    """
    left = _operand(operation, 0, "TransposeInput")
    right = _operand(operation, 1, "TransposeOther")
    return fit(operation, operation.emit("MatMul", left, right))


def _operand(operation: Operation, index: int, attribute: str) -> Value:
    value = operation.inputs[index]
    shape = operation.shape_of(value)
    flipped = operation.bool(attribute)
    if len(shape) == 1:
        if flipped:
            operation.unsupported("a vector has nothing to transpose", attribute)
        return reshape(operation, value, (1, *shape) if index == 0 else (*shape, 1))
    if not flipped:
        return value
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return operation.emit("Transpose", value, perm=order)
