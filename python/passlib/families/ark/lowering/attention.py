"""Operators of transformers: rotary position embedding and token embedding."""

from __future__ import annotations

import numpy as np

from passlib.families.ark.lowering.table import TABLE, box_of, fit, reshape
from passlib.families.ark.shapes import broadcast
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("Rope")
def rope(operation: Operation) -> Value:
    """Multiply as complex numbers whose parts are neighbours in the last dimension.

    ``out[2k] = a[2k] b[2k] - a[2k+1] b[2k+1]``, ``out[2k+1] = a[2k] b[2k+1] + a[2k+1] b[2k]``.
    """
    shapes = [operation.shape_of(value) for value in operation.inputs]
    shape = broadcast(*shapes)
    if shape[-1] % 2:
        operation.unsupported(f"the last dimension of {shape} is not even")
    parts = []
    for value, own in zip(operation.inputs, shapes, strict=True):
        full = operation.constant((*(1 for _ in own[:-1]), shape[-1]), np.int64)
        even = value if own[-1] == shape[-1] else operation.emit("Expand", value, full)
        pairs = reshape(operation, even, (*own[:-1], shape[-1] // 2, 2))
        index = (operation.constant([i], np.int64) for i in (0, 1))
        parts.append([operation.emit("Gather", pairs, i, axis=-1) for i in index])
    (real, imaginary), (cosine, sine) = parts
    out = (
        operation.emit(
            "Sub",
            operation.emit("Mul", real, cosine),
            operation.emit("Mul", imaginary, sine),
        ),
        operation.emit(
            "Add",
            operation.emit("Mul", real, sine),
            operation.emit("Mul", imaginary, cosine),
        ),
    )
    return fit(operation, reshape(operation, operation.emit("Concat", *out, axis=-1), shape))


@TABLE.register("Embedding")
def embedding(operation: Operation) -> Value:
    """Choose rows of the weight; a negative index counts from the end."""
    indices, weight = operation.inputs
    if operation.rank_of(weight) != 2:
        operation.unsupported("the weight must have two dimensions")
    rows = operation.emit("Gather", weight, indices, axis=0)
    return reshape(operation, rows, box_of(operation).shape)
