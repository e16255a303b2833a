"""Helpers shared by several families: options, activations, checks of element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.families.dlprim import options
from passlib.lowering import Operation, Value, describe


def options_of(op: Operation) -> dict[str, Any]:
    """Read the options of a node, defaults included.

    Raises
    ------
    UnsupportedError
        An option has an invalid value.
    """
    try:
        return options.read(op.node.op, op.node.attrs)
    except options.OptionError as error:
        op.unsupported(str(error), error.option)


def floats(op: Operation, *values: Value) -> None:
    """Check that the inputs of an operator are floats, as the original requires."""
    for value in values:
        dtype = op.dtype_of(value)
        if dtype.kind not in "fV" or dtype.names is not None:
            op.unsupported(f"computes on real numbers, but receives {dtype}")


def activate(op: Operation, value: Value, name: str) -> Value:
    """Apply one of the standard activations."""
    if name == "identity":
        return value
    if name == "relu6":
        return op.emit("Clip", value, op.constant_like(0, value), op.constant_like(6, value))
    return op.emit({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[name], value)


def size_of(op: Operation, value: Value, axis: int) -> int:
    """Return the size of one axis; others may be unknown.

    Raises
    ------
    UnsupportedError
        The size is unknown.
    """
    op.rank_of(value)
    size = None if value.shape is None else value.shape[axis]
    if size is None:
        op.unsupported(f"needs a known size of axis {axis}, has {describe(value)}")
    return size


def vector_of_one(op: Operation, value: Value) -> Value:
    """Convert a scalar to a tensor of shape (1), since DLPrimitives has no scalars."""
    return op.emit("Reshape", value, op.constant([1], np.int64))
