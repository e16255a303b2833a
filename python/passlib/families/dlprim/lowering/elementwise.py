"""Elementwise operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.families.dlprim.lowering.layers import (
    activate,
    floats,
    options_of,
    size_of,
    vector_of_one,
)
from passlib.families.dlprim.lowering.table import table
from passlib.families.dlprim.shapes import reduced, squeezed
from passlib.lowering import Operation, Value
from passlib.lowering.types import Misfit


@table.register("Abs")
def absolute(op: Operation) -> Value:
    """Take the absolute value."""
    floats(op, op.inputs[0])
    return op.emit("Abs", op.inputs[0])


@table.register("Activation")
def activation(op: Operation) -> Value:
    """Apply relu, tanh, sigmoid, relu6 (0 to 6) or identity."""
    (data,) = op.operands(1)
    name = options_of(op)["activation"]
    if name == "identity":
        return op.emit("Identity", data)
    floats(op, data)
    return activate(op, data, name)


@table.register("Elementwise")
def elementwise(op: Operation) -> Value:
    """Combine two tensors, with NumPy's broadcasting, then apply ``activation``.

    ``sum`` is ``coef1 * a + coef2 * b``, ``prod`` is ``coef1 * coef2 * a * b``, ``max`` the
    larger of ``coef1 * a`` and ``coef2 * b``.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    left, right = op.operands(2)
    first, second = options["coef1"], options["coef2"]
    if options["operation"] == "prod":
        value = _scaled(op, op.emit("Mul", left, right), first * second)
    else:
        kind = "Add" if options["operation"] == "sum" else "Max"
        value = op.emit(kind, _scaled(op, left, first), _scaled(op, right, second))
    return activate(op, value, options["activation"])


@table.register("Hardtanh")
def hardtanh(op: Operation) -> Value:
    """Clip to ``min_val`` and ``max_val``; if these are swapped, ``min_val`` wins."""
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    below = op.emit("Min", data, op.constant_like(options["max_val"], data))
    return op.emit("Max", below, op.constant_like(options["min_val"], data))


@table.register("Threshold")
def threshold(op: Operation) -> Value:
    """Return 1 where an element is above ``threshold``, otherwise 0."""
    (data,) = op.operands(1)
    floats(op, data)
    above = op.emit("Greater", data, op.constant_like(options_of(op)["threshold"], data))
    return op.cast(above, op.dtype_of(data))


def _scaled(op: Operation, value: Value, factor: float) -> Value:
    return value if factor == 1 else op.emit("Mul", value, op.constant_like(factor, value))


_METHODS = {
    "sum": "ReduceSum",
    "sumsq": "ReduceSumSquare",
    "abssum": "ReduceL1",
    "mean": "ReduceMean",
}


@table.register("Reduction")
def reduction(op: Operation) -> Value:
    """Reduce the axes ``dims``, or those from ``start_axis`` on, and multiply by ``output_scale``.

    ``method`` is ``sum``, ``mean``, ``sumsq`` (of squares) or ``abssum`` (of absolute values).
    Without ``keep_dim`` the axes are removed; if none is left, the shape is (1).
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    rank = op.rank_of(data)
    try:
        axes = reduced(options, rank)
    except Misfit as error:
        op.unsupported(str(error), "dims" if options["dims"] else "start_axis")
    indices = op.constant(axes, np.int64)
    keep = int(options["keep_dim"])
    result = op.emit(_METHODS[options["method"]], data, indices, keepdims=keep)
    if not keep and len(axes) == rank:
        result = vector_of_one(op, result)
    scale = options["output_scale"]
    return result if scale == 1 else op.emit("Mul", result, op.constant_like(scale, result))


@table.register("Concat")
def concat(op: Operation) -> Value:
    """Concatenate tensors along axis ``dim``."""
    dim = options_of(op)["dim"]
    if not 0 <= dim < op.rank_of(op.inputs[0]):
        op.unsupported(f"there is no axis {dim}", "dim")
    return op.emit("Concat", *op.inputs, axis=dim)


@table.register("Slice")
def slice_(op: Operation) -> Value:
    """Return elements ``begin`` up to ``end`` along axis ``dim``; end -1 includes the last."""
    (data,) = op.operands(1)
    options = options_of(op)
    dim, begin, end = options["dim"], options["begin"], options["end"]
    if not 0 <= dim < op.rank_of(data):
        op.unsupported(f"there is no axis {dim}", "dim")
    size = size_of(op, data, dim)
    if not 0 <= begin < (size if end == -1 else end) <= size:
        op.unsupported(f"cannot take {begin} to {end} of {size} elements", "end")
    bounds = (begin, size if end == -1 else end, dim)
    return op.emit("Slice", data, *(op.constant([bound], np.int64) for bound in bounds))


@table.register("Flatten")
def flatten(op: Operation) -> Value:
    """Reshape (N, ...) to a matrix of N rows."""
    return op.emit("Flatten", op.inputs[0], axis=1)


@table.register("Squeeze")
def squeeze(op: Operation) -> Value:
    """Remove the axes ``dims``, or with ``all`` every axis of size 1; if none is left, keep (1)."""
    (data,) = op.operands(1)
    options = options_of(op)
    shape: Sequence[int] = op.shape_of(data) if options["all"] else _ones_where_open(op, data)
    try:
        axes = squeezed(options, shape)
    except Misfit as error:
        op.unsupported(str(error), "dims")
    if not axes:
        return op.emit("Identity", data)
    result = op.emit("Squeeze", data, op.constant(axes, np.int64))
    return vector_of_one(op, result) if len(axes) == len(shape) else result


def _ones_where_open(op: Operation, data: Value) -> list[int]:
    """Return a shape to check ``dims`` with; ONNX Runtime checks unknown sizes."""
    op.rank_of(data)
    return [1 if size is None else size for size in data.shape or ()]


@table.register("Reshape")
def reshape(op: Operation) -> Value:
    """Reshape to ``dims``: 0 copies the size of the input, -1 follows from the other sizes."""
    return op.emit("Reshape", op.inputs[0], op.constant(options_of(op)["dims"], np.int64))


@table.register("Parameter")
def parameter(op: Operation) -> Value:
    """Return the parameter itself."""
    return op.emit("Identity", op.inputs[0])


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
