"""Matrix products."""

from __future__ import annotations

from passlib.families.ark.lowering.table import TABLE, fit, reshape
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("Matmul")
def matmul(operation: Operation) -> Value:
    """Multiply matrices in the last two dimensions; leading dimensions broadcast.

    A vector on the left is a row, one on the right a column; vectors cannot be transposed.
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
            operation.unsupported("a vector cannot be transposed", attribute)
        return reshape(operation, value, (1, *shape) if index == 0 else (*shape, 1))
    if not flipped:
        return value
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return operation.emit("Transpose", value, perm=order)
