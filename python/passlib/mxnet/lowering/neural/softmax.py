"""Variants of softmax, and the output layers, which lower to their forward functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import places, reshaped, vector
from passlib.mxnet.lowering.elementwise.transcendental import logistic
from passlib.mxnet.lowering.real_arithmetic import is_real, larger
from passlib.mxnet.lowering.table import table


@table.register("softmax", "_npx_softmax")
def softmax(op: Operation) -> Value:
    """Normalize exp(x / temperature) along ``axis``, shape unchanged.

    With ``use_length`` the second input, shaped as the data without ``axis``, is the number of
    positions that count; later ones are zero. ``dtype`` is the element type of the result.
    """
    data = _scaled(op, sign=1.0)
    if not op.bool("use_length", False):
        return _normalized("Softmax", op, data)
    axis = op.axis(data, op.int("axis", -1))
    inside = _inside(op, data, axis)
    masked = op.emit("Where", inside, data, op.constant_like(-np.inf, data))
    zero = op.constant_like(0, data)
    return _as_wanted(op, op.emit("Where", inside, op.emit("Softmax", masked, axis=axis), zero))


@table.register("log_softmax", "_npx_log_softmax")
def log_softmax(op: Operation) -> Value:
    """Compute the logarithm of `softmax`."""
    if op.bool("use_length", False):
        op.unsupported("a masked log_softmax is not defined", "use_length")
    return _normalized("LogSoftmax", op, _scaled(op, sign=1.0))


@table.register("softmin")
def softmin(op: Operation) -> Value:
    """Apply `softmax` to the negated input."""
    if op.bool("use_length", False):
        op.unsupported("a masked softmin is not defined", "use_length")
    return _normalized("Softmax", op, _scaled(op, sign=-1.0))


@table.register("SoftmaxActivation")
def softmax_activation(op: Operation) -> Value:
    """Apply softmax over axis 1 (``mode`` channel) or over the last axis (instance)."""
    (data,) = op.operands(1)
    channel = op.string("mode", "instance", choices=("instance", "channel")) == "channel"
    return op.emit("Softmax", data, axis=1 if channel else -1)


@table.register("SoftmaxOutput", "Softmax")
def softmax_output(op: Operation) -> Value:
    """Apply softmax; the label affects only the gradient.

    It runs over axis 1 with ``multi_output``, over the last axis with ``preserve_shape``, else
    over all axes but the first.
    """
    data = op.inputs[0]
    if op.bool("multi_output", False):
        return op.emit("Softmax", data, axis=1)
    if op.bool("preserve_shape", False):
        return op.emit("Softmax", data, axis=-1)
    return _flat_softmax(op, data)


@table.register("LogisticRegressionOutput", "_sparse_LogisticRegressionOutput")
def logistic_output(op: Operation) -> Value:
    """Apply the sigmoid to the first input; the label affects only the gradient."""
    return logistic(op, op.inputs[0])


@table.register("softmax_cross_entropy")
def softmax_cross_entropy(op: Operation) -> Value:
    """Sum -log softmax(data)[label]: ``data`` (N, C) and ``label`` (N,) to (1,).

    A probability below 1e-8 counts as 1e-8, which is 0 in float16.
    """
    data, label = op.operands(2)
    op.require_rank(data, 2)
    probabilities = op.emit("Softmax", data, axis=1)
    index = op.emit("Unsqueeze", op.cast(label, "int64"), vector(op, 1))
    chosen = op.emit("GatherElements", probabilities, index, axis=1)
    limited = larger(op, chosen, op.constant_like(1e-8, chosen))
    total = op.emit("ReduceSum", op.emit("Log", limited), vector(op, 0), keepdims=0)
    return op.emit("Neg", total)


def _normalized(onnx_operator: str, op: Operation, data: Value) -> Value:
    """Apply an operator along ``axis``; a scalar has the axes 0 and -1."""
    axis = op.int("axis", -1)
    if op.rank_of(data) == 0 and axis in (0, -1):
        line = op.emit("Unsqueeze", data, vector(op, 0))
        return _as_wanted(op, reshaped(op, op.emit(onnx_operator, line, axis=0), []))
    return _as_wanted(op, op.emit(onnx_operator, data, axis=op.axis(data, axis)))


def _as_wanted(op: Operation, value: Value) -> Value:
    """Convert to ``dtype``, if it is given."""
    dtype = op.dtype("dtype", None)
    return value if dtype is None else op.cast(value, dtype)


def _scaled(op: Operation, sign: float) -> Value:
    data = op.inputs[0]
    if not is_real(op.dtype_of(data)):
        data = _as_wanted(op, data)
    factor = sign / (op.optional_float("temperature") or 1.0)
    return data if factor == 1.0 else op.emit("Mul", data, op.constant_like(factor, data))


def _inside(op: Operation, data: Value, axis: int) -> Value:
    """Return whether each position along ``axis`` is below the length, to broadcast to the data."""
    length = op.emit("Unsqueeze", op.inputs[1], vector(op, axis))
    shape: Sequence[int] = [-1 if i == axis else 1 for i in range(op.rank_of(data))]
    position = op.emit("Reshape", places(op, data, axis), vector(op, *shape))
    return op.emit("Less", op.cast(position, op.dtype_of(length)), length)


def _flat_softmax(op: Operation, data: Value) -> Value:
    if op.rank_of(data) == 2:
        return op.emit("Softmax", data, axis=1)
    flat = op.emit("Softmax", op.emit("Flatten", data, axis=1), axis=1)
    return op.emit("Reshape", flat, op.emit("Shape", data))
