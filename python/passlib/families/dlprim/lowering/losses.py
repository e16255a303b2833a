"""Softmax and losses."""

from __future__ import annotations

import numpy as np

from passlib.families.dlprim.lowering.common import floats, options_of, size_of, vector_of_one
from passlib.families.dlprim.lowering.table import table
from passlib.lowering import Operation, Value


@table.register("Softmax")
def softmax(op: Operation) -> Value:
    """Apply softmax along axis 1 of (N, C) or (N, C, L); with ``log``, its logarithm."""
    (data,) = op.operands(1)
    floats(op, data)
    if op.rank_of(data) not in (2, 3):
        op.unsupported(f"needs 2 or 3 dimensions, has {op.rank_of(data)}")
    return op.emit("LogSoftmax" if options_of(op)["log"] else "Softmax", data, axis=1)


@table.register("SoftmaxWithLoss")
def softmax_with_loss(op: Operation) -> Value:
    """Average ``-log softmax(x)[label]`` of x (N, C) over N, as a tensor of shape (1).

    A label outside 0 to C - 1 makes the run fail, as in the original.
    """
    scores, label = op.operands(2)
    floats(op, scores)
    classes = size_of(op, scores, 1)
    index = _column(op, label)
    # ONNX counts negative indices from the end, but here they must fail.
    valid = op.emit("GreaterOrEqual", index, op.constant(0, np.int64))
    index = op.emit("Where", valid, index, op.constant(classes, np.int64))
    chosen = op.emit("GatherElements", op.emit("LogSoftmax", scores, axis=1), index, axis=1)
    return vector_of_one(op, op.emit("Neg", op.emit("ReduceMean", chosen, keepdims=0)))


@table.register("NLLLoss")
def negative_log_likelihood(op: Operation) -> Value:
    """Return ``-x[label]`` of x (N, C): each, their mean or their sum, as ``reduce`` states.

    A label outside 0 to C - 1 contributes 0.
    """
    scores, label = op.operands(2)
    floats(op, scores)
    classes = np.arange(size_of(op, scores, 1))[None, :]
    own = op.emit("Equal", _column(op, label), op.constant(classes, np.int64))
    masked = op.emit("Where", own, scores, op.constant_like(0, scores))
    chosen = op.emit("ReduceSum", masked, op.constant([1], np.int64), keepdims=0)
    return _reduced(op, op.emit("Neg", chosen))


@table.register("MSELoss")
def mean_square_error(op: Operation) -> Value:
    """Square the difference of two tensors; return each element, their mean or their sum."""
    floats(op, *op.inputs)
    difference = op.emit("Sub", *op.inputs)
    return _reduced(op, op.emit("Mul", difference, difference))


def _column(op: Operation, label: Value) -> Value:
    """Convert integer or real labels to indices of shape (N, 1), truncating as C does."""
    index = op.cast(label, np.int64)
    return op.emit("Reshape", index, op.constant([-1, 1], np.int64))


def _reduced(op: Operation, value: Value) -> Value:
    reduction = options_of(op)["reduce"]
    if reduction == "none":
        return value
    kind = "ReduceMean" if reduction == "mean" else "ReduceSum"
    return vector_of_one(op, op.emit(kind, value, keepdims=0))
