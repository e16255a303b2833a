"""Reductions along one axis."""

from __future__ import annotations

import numpy as np

from passlib.families.ark.lowering.table import TABLE, fit
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("ReduceSum", "ReduceMean", "ReduceMax")
def reduce(operation: Operation) -> Value:
    """Reduce ``Axis``, which stays as a dimension of size 1 if ``KeepDim`` is true."""
    value = operation.inputs[0]
    axis = operation.axis(value, operation.int("Axis"))
    keep = operation.bool("KeepDim")
    axes = operation.constant([axis], np.int64)
    return fit(operation, operation.emit(operation.node.op, value, axes, keepdims=int(keep)))
