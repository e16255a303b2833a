"""Operators that move elements or change their type."""

from __future__ import annotations

from passlib.families.ark.lowering.table import TABLE, fit, type_of
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("Copy")
def copy(operation: Operation) -> Value:
    """Copy, stretching sizes of 1."""
    return fit(operation, operation.emit("Identity", operation.inputs[0]))


@TABLE.register("Cast", "Recast")
def cast(operation: Operation) -> Value:
    """Convert as C does, truncating fractions.

    ``Recast`` reads a buffer of integers as signed or unsigned ones of the same size.
    """
    value = operation.cast(operation.inputs[0], type_of(operation))
    return value if operation.node.op == "Recast" else fit(operation, value)


@TABLE.register("Arrange")
def arrange(operation: Operation) -> Value:
    """Store a message in a tensor of another shape."""
    return fit(operation, operation.inputs[0])


@TABLE.register("Transpose")
def transpose(operation: Operation) -> Value:
    """Permute dimensions: dimension i of the result is ``Permutation[i]`` of the operand."""
    order = operation.ints("Permutation")
    rank = operation.rank_of(operation.inputs[0])
    if sorted(order) != list(range(rank)):
        operation.unsupported(f"is not a permutation of {rank} dimensions", "Permutation")
    return fit(operation, operation.emit("Transpose", operation.inputs[0], perm=list(order)))
