"""Dense layers, activations with parameters, normalization."""

from __future__ import annotations

import numpy as np

from passlib.families.nnvm.lowering.layouts import DATA, require_shape
from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.contraction import dot
from passlib.lowering.extents import vector


@table.register("dense")
def dense(op: Operation) -> Value:
    """Multiply by the transposed weight and add the bias.

    ``data`` (..., n), ``weight`` (units, n), ``bias`` (units,) unless ``use_bias`` is false;
    the result is (..., units).
    """
    units = op.int("units")
    data, weight = op.operands(2, more=True)
    require_shape(op, weight, units, data.shape[-1] if data.shape else None)
    bias = op.inputs[2] if op.bool("use_bias", True) else None
    if bias is not None:
        require_shape(op, bias, units)
    if op.rank_of(data) == 2:
        return op.emit("Gemm", data, weight, bias, transB=1)
    product = op.emit("MatMul", data, op.emit("Transpose", weight, perm=[1, 0]))
    return product if bias is None else op.emit("Add", product, bias)


@table.register("matmul")
def matmul(op: Operation) -> Value:
    """Contract the last axis of the first input with the first of the second, like MXNet's ``dot``.

    ``transpose_a`` and ``transpose_b`` transpose matrices first.
    """
    for value, name in zip(op.inputs, ("transpose_a", "transpose_b"), strict=True):
        if op.rank_of(value) != 2 and op.bool(name, False):
            op.unsupported("is defined for matrices only", name)
    return dot(op)


@table.register("leaky_relu")
def leaky_relu(op: Operation) -> Value:
    """Return x, multiplied by ``alpha`` where negative."""
    return op.emit("LeakyRelu", op.inputs[0], alpha=op.float("alpha", 0.25))


@table.register("prelu")
def prelu(op: Operation) -> Value:
    """Apply `leaky_relu` with a slope for each channel: ``alpha`` (C,), channels at ``axis``."""
    data, alpha = op.operands(2)
    axis = op.axis(data, op.int("axis", 1))
    require_shape(op, alpha, data.shape[axis] if data.shape else None)
    following = op.rank_of(data) - axis - 1
    if following:
        alpha = op.emit("Unsqueeze", alpha, vector(op, *range(1, following + 1)))
    return op.emit("PRelu", data, alpha)


@table.register("batch_norm")
def batch_norm(op: Operation) -> list[Value]:
    """Normalize each channel by its running mean and variance, as in inference.

    ``data`` any shape with channels at ``axis``; gamma, beta, moving_mean, moving_var (C,).
    gamma is 1 without ``scale``, beta is 0 without ``center``. The outputs mean and var are for
    training.
    """
    if op.train:
        op.unsupported("is lowered for inference only")
    data, gamma, beta, mean, variance = op.operands(5)
    rank, axis = op.rank_of(data), op.axis(data, op.int("axis", 1))
    channels = op.shape_of(mean)
    if not op.bool("scale", True):
        gamma = op.constant_like(np.ones(channels), data)
    if not op.bool("center", True):
        beta = op.constant_like(np.zeros(channels), data)
    order = [i for i in range(rank) if i != axis]
    order.insert(1, axis)
    moved = axis != 1
    if rank == 1:
        op.unsupported("needs data with at least two axes")
    if moved:
        data = op.emit("Transpose", data, perm=order)
    result = op.emit(
        "BatchNormalization", data, gamma, beta, mean, variance, epsilon=op.float("epsilon", 1e-5)
    )
    if moved:
        result = op.emit("Transpose", result, perm=[order.index(i) for i in range(rank)])
    why = "batch statistics exist in training only"
    hidden = [op.declare(value.dtype, value.shape, why) for value in (mean, variance)]
    return [result, *hidden]


@table.register("dropout")
def dropout(op: Operation) -> list[Value]:
    """Return the input, as in inference; the mask is for training."""
    if op.train and op.float("rate", 0.5) > 0:
        op.unsupported("is lowered for inference only")
    data = op.inputs[0]
    mask = op.declare(data.dtype, data.shape, "the mask exists in training only")
    return [op.emit("Identity", data), mask]


@table.register("l2_normalize")
def l2_normalize(op: Operation) -> Value:
    """Divide by ``sqrt(max(sum of squares along axis, eps))``."""
    data = op.inputs[0]
    axes = vector(op, *(op.axis(data, axis) for axis in op.ints("axis")))
    total = op.emit("ReduceSum", op.emit("Mul", data, data), axes, keepdims=1)
    least = op.emit("Max", total, op.constant_like(op.float("eps"), data))
    return op.emit("Div", data, op.emit("Sqrt", least))


@table.register("lrn")
def local_response_normalization(op: Operation) -> Value:
    """Divide by ``(bias + alpha / size * sum of squares of nearby channels) ** beta``.

    The sum is over ``size`` channels around each one along ``axis``, with 0 beyond the ends.
    """
    data = op.inputs[0]
    size, axis = op.int("size", 5), op.axis(data, op.int("axis", 1))
    if size % 2 == 0 or size < 1:
        op.unsupported("must be odd and positive", "size")
    require_shape(op, data, *[None] * len(DATA))
    alpha, beta = op.float("alpha", 0.0001), op.float("beta", 0.75)
    for name, number in (("alpha", alpha), ("beta", beta)):
        if not number > 0:
            op.unsupported("must be above 0", name)
    order = [i for i in range(op.rank_of(data)) if i != axis]
    order.insert(1, axis)
    if axis != 1:
        data = op.emit("Transpose", data, perm=order)
    result = op.emit(
        "LRN",
        data,
        size=size,
        alpha=alpha,
        beta=beta,
        bias=op.float("bias", 2.0),
    )
    if axis == 1:
        return result
    return op.emit("Transpose", result, perm=[order.index(i) for i in range(len(order))])
