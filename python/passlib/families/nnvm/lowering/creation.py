"""Arrays created from a shape and a value."""

from __future__ import annotations

import numpy as np

from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector


@table.register("full")
def full(op: Operation) -> Value:
    """Fill ``shape`` with ``fill_value``, in element type ``dtype``, by default float32."""
    return _filled(op, op.float("fill_value"))


@table.register("zeros")
def zeros(op: Operation) -> Value:
    """Fill ``shape`` with 0."""
    return _filled(op, 0.0)


@table.register("ones")
def ones(op: Operation) -> Value:
    """Fill ``shape`` with 1."""
    return _filled(op, 1.0)


@table.register("full_like")
def full_like(op: Operation) -> Value:
    """Fill the shape of the input with ``fill_value``, in its element type."""
    data = op.inputs[0]
    return op.emit("Expand", op.constant_like(op.float("fill_value"), data), op.emit("Shape", data))


def _filled(op: Operation, value: float) -> Value:
    shape = op.ints("shape")
    if min(shape, default=1) < 0:
        op.unsupported("has a negative size", "shape")
    dtype = op.dtype("dtype", np.dtype(np.float32)) or np.dtype(np.float32)
    return op.emit("Expand", op.constant(np.asarray(value).astype(dtype)), vector(op, *shape))
