"""Evaluation of polynomials."""

from __future__ import annotations

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.table import table

_MOST_COEFFICIENTS = 256


@table.register("_npi_polyval")
def polyval(op: Operation) -> Value:
    """Evaluate the polynomial with coefficients ``p``, the highest first, at each element."""
    coefficients, x = op.operands(2)
    (count,) = op.shape_of(coefficients, 1)
    if count > _MOST_COEFFICIENTS:
        op.unsupported(f"is unrolled for at most {_MOST_COEFFICIENTS} coefficients, not {count}")
    result = op.emit("Mul", x, op.constant_like(0, x))
    for place in range(count):
        factor = op.emit("Gather", coefficients, op.constant(place), axis=0)
        result = op.emit("Add", op.emit("Mul", result, x), factor)
    return result
