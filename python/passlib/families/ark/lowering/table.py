"""The table of lowering functions, filled by the other modules, and what these share."""

from __future__ import annotations

import json
import math

import numpy as np

from passlib.families.ark.lowering.memory import BOX, SIZE, TYPE
from passlib.families.ark.tensors import Box, numpy_type
from passlib.graph.attributes import blame
from passlib.lowering import Lowerings, Operation, Value

TABLE = Lowerings("ark")


def box_of(operation: Operation) -> Box:
    """Return the box that an operation reads, writes or computes."""
    shape, strides, offsets = json.loads(operation.string(BOX))
    return Box(tuple(shape), tuple(strides), tuple(offsets))


def type_of(operation: Operation) -> np.dtype:
    """Return the element type of an operation's result."""
    return numpy_type(operation.string(TYPE), blame(operation.node))


def size_of(operation: Operation) -> int:
    """Return the number of elements of the buffer that an operation reads or writes."""
    return operation.int(SIZE)


def reshape(operation: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    """Reshape a value; return the value itself if it has that shape."""
    if value.shape == shape:
        return value
    return operation.emit("Reshape", value, operation.constant(shape, np.int64))


def fit(operation: Operation, value: Value) -> Value:
    """Bring a result to the shape of its destination, which may be larger.

    Expand sizes of 1 and add dimensions in front; only reshape if the number of elements is equal.
    """
    target = box_of(operation).shape
    shape = operation.shape_of(value)
    if math.prod(shape) == math.prod(target):
        return reshape(operation, value, target)
    return operation.emit("Expand", value, operation.constant(target, np.int64))
