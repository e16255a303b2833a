"""Normalization by statistics (batch, layer, group, instance, L2, local response), and dropout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import numbers_or_none, reshaped, reshaped_like, vector
from passlib.mxnet.lowering.table import table


@table.register("BatchNorm", "_npx_batch_norm")
def batch_norm(op: Operation) -> Sequence[Value]:
    """Normalize each channel, then scale by gamma (1 with ``fix_gamma``) and shift by beta.

    ``data`` has any shape with C channels on ``axis``; the other four inputs are (C,). Outputs:
    the result, the mean used, and 1 / sqrt(variance used + eps). Outside training, and with
    ``use_global_stats``, the moving statistics are used; in training those of the batch (biased
    variance). The moving statistics are not updated.
    """
    result, mean, variance = _batch_norm(op, op.axis(op.inputs[0], op.int("axis", 1)))
    return result, mean, op.emit("Reciprocal", op.emit("Sqrt", variance + _epsilon(op)))


@table.register("BatchNorm_v1", "_contrib_SyncBatchNorm")
def batch_norm_of_channels(op: Operation) -> Sequence[Value]:
    """Apply `batch_norm` to channels on axis 1; the third output is the variance."""
    return _batch_norm(op, 1)


@table.register("_contrib_BatchNormWithReLU")
def batch_norm_relu(op: Operation) -> Sequence[Value]:
    """Apply `batch_norm`, then max(x, 0)."""
    result, mean, deviation = batch_norm(op)
    mask = op.declare(result.dtype, result.shape, "the mask of positive results is not provided")
    return op.emit("Relu", result), mean, deviation, mask


@table.register("LayerNorm", "_npx_layer_norm")
def layer_norm(op: Operation) -> Sequence[Value]:
    """Normalize along one axis, then scale by gamma and shift by beta, both (size of axis,).

    Outputs: the result, the mean and sqrt(variance + eps), the latter two with size 1 on the
    axis.
    """
    data, gamma, beta = op.operands(3)
    axis = op.axis(data, op.int("axis", -1))
    epsilon = op.float("eps", 1e-5)
    if axis == op.rank_of(data) - 1:
        return _layer_norm(op, data, gamma, beta, axis, epsilon)
    normal, mean, deviation = _standardised(op, data, [axis], epsilon)
    gamma, beta = (_along(op, value, axis, op.rank_of(data)) for value in (gamma, beta))
    return _affine(op, normal, gamma, beta), mean, deviation


@table.register("GroupNorm")
def group_norm(op: Operation) -> Sequence[Value]:
    """Normalize each of ``num_groups`` groups of channels of ``data`` (N, C, ...).

    gamma and beta have one element per group in MXNet 1.x, one per channel in 2.0; their size
    decides. Outputs: the result, the mean and sqrt(variance + eps), the latter two
    (N, num_groups).
    """
    data, gamma, beta = op.operands(3)
    groups = op.int("num_groups", 1)
    if groups < 1:
        op.invalid("must be at least 1", "num_groups")
    op.require_rank(data, least=2)
    channels = op.size_of(data, 1)
    if channels % groups:
        op.invalid(f"does not divide the {channels} channels", "num_groups")
    split = op.emit("Reshape", data, [0, groups, -1])
    normal, mean, deviation = _standardised(op, split, [2], op.float("eps", 1e-5))
    if op.shape_of(gamma) == (groups,):
        gamma, beta = (op.emit("Unsqueeze", value, [1]) for value in (gamma, beta))
        result = reshaped_like(op, _affine(op, normal, gamma, beta), data)
    else:
        gamma, beta = (_along(op, value, 1, op.rank_of(data)) for value in (gamma, beta))
        result = _affine(op, reshaped_like(op, normal, data), gamma, beta)
    last = vector(op, 2)
    return result, op.emit("Squeeze", mean, last), op.emit("Squeeze", deviation, last)


@table.register("InstanceNorm")
def instance_norm(op: Operation) -> Sequence[Value]:
    """Normalize each channel of each example of (N, C, ...); gamma and beta are (C,)."""
    data, gamma, beta = op.operands(3)
    if op.rank_of(data) < 3:
        op.invalid("requires an input of at least three axes")
    result = op.emit("InstanceNormalization", data, gamma, beta, epsilon=op.float("eps", 1e-3))
    hidden = None if data.shape is None else data.shape[:2]
    why = "its statistics are not provided"
    return result, op.declare(data.dtype, hidden, why), op.declare(data.dtype, hidden, why)


@table.register("L2Normalization")
def l2_normalization(op: Operation) -> Sequence[Value]:
    """Divide by sqrt(sum of squares + eps), shape unchanged.

    The sum runs over all axes but the first (``mode`` instance), over axis 1 (channel), or over
    the axes after it (spatial). The hidden second output is the norm.
    """
    (data,) = op.operands(1)
    mode = op.string("mode", "instance", choices=("instance", "channel", "spatial"))
    rank = op.rank_of(data)
    axes = {"instance": range(1, rank), "channel": range(1, 2), "spatial": range(2, rank)}[mode]
    if mode != "instance" and rank < 3:
        op.invalid("requires an input of at least three axes", "mode")
    # ONNX takes an empty list of axes for all axes.
    squares = op.emit("ReduceSumSquare", data, axes, keepdims=1) if axes else data * data
    norm = op.emit("Sqrt", squares + op.float("eps", 1e-10))
    if mode == "channel" or not axes:
        return data / norm, norm
    return data / norm, op.emit("Squeeze", norm, axes)


@table.register("LRN")
def local_response_norm(op: Operation) -> Sequence[Value]:
    """Divide by (knorm + alpha / nsize * sum of squares over nsize channels) ** beta.

    ``data`` (N, C, H, W), shape unchanged. The window is symmetric, so an even ``nsize`` covers
    one channel less. The hidden second output is the sum.
    """
    (data,) = op.operands(1)
    size = op.int("nsize")
    if size < 1:
        op.invalid("must be at least 1", "nsize")
    window = size - 1 + size % 2
    alpha, beta, bias = op.float("alpha", 1e-4), op.float("beta", 0.75), op.float("knorm", 2.0)
    if alpha > 0 and beta > 0:
        alpha *= window / size
        result = op.emit("LRN", data, size=window, alpha=alpha, beta=beta, bias=bias)
    else:
        # ONNX Runtime's LRN takes positive numbers only.
        scale = _window_sums(op, data, window) * (alpha / size)
        scale = scale + bias
        result = data * scale**-beta
    return result, op.declare(data.dtype, data.shape, "its norms are not provided")


def _window_sums(op: Operation, data: Value, window: int) -> Value:
    """Sum the squares of ``window`` channels around each one of (N, C, H, W)."""
    op.require_rank(data, 4)
    planes = reshaped(op, data * data, [(0,), 1, (1,), (2, 3)])
    border = window // 2
    means = op.emit(
        "AveragePool",
        planes,
        kernel_shape=[window, 1],
        pads=[border, 0, border, 0],
        count_include_pad=1,
    )
    return reshaped_like(op, means, data) * window


@table.register("Dropout", "_npx_dropout")
def dropout(op: Operation) -> Sequence[Value]:
    """In training zero elements with probability ``p`` and scale the rest by 1 / (1 - p).

    Outside training the data are unchanged, unless ``mode`` is always. All elements along
    ``axes`` share one draw. The draws differ from MXNet's. The hidden second output is the mask.
    """
    (data,) = op.operands(1)
    mode = op.string("mode", "training", choices=("training", "always"))
    shared = numbers_or_none(op, "axes")
    shape = data.shape
    if shape is not None and not all(0 <= axis < len(shape) for axis in shared):
        op.invalid(f"has an axis outside of {describe(data)}", "axes")
    if shape is not None and shared:
        shape = tuple(1 if axis in shared else size for axis, size in enumerate(shape))
    hidden = op.declare(data.dtype, shape, "the mask of dropout is not provided")
    rate = op.float("p", 0.5)
    if rate == 0 or (mode == "training" and not op.train):
        return op.emit("Identity", data), hidden
    if rate >= 1:
        op.unsupported("leaves no element", "p")
    ratio, active = op.constant(rate, "float32"), op.constant(True)
    if not shared:
        return op.emit("Dropout", data, ratio, active), hidden
    op.affordable(*op.shape_of(data))
    drawn = [1 if axis in shared else size for axis, size in enumerate(op.shape_of(data))]
    mask = op.emit("Dropout", op.constant_like(np.ones(drawn), data), ratio, active)
    return data * mask, hidden


def _batch_norm(op: Operation, axis: int) -> tuple[Value, Value, Value]:
    data, gamma, beta, mean, variance = op.operands(5)
    if op.bool("fix_gamma", True):
        gamma = op.constant_like(np.ones(_channels(op, axis)), beta)
    if op.train and not op.bool("use_global_stats", False):
        axes = [i for i in range(op.rank_of(data)) if i != axis]
        wide = op.cast(data, op.dtype_of(mean))
        mean = op.emit("ReduceMean", wide, axes, keepdims=0) if axes else wide
        centred = wide - _along(op, mean, axis, op.rank_of(data))
        squares = centred * centred
        variance = op.emit("ReduceMean", squares, axes, keepdims=0) if axes else squares
    dtype = op.dtype_of(data)
    wide = op.cast(data, op.dtype_of(mean))
    epsilon = _epsilon(op)
    if axis == 1:
        result = op.emit("BatchNormalization", wide, gamma, beta, mean, variance, epsilon=epsilon)
        return op.cast(result, dtype), mean, variance
    scale = gamma / op.emit("Sqrt", variance + epsilon)
    shift = beta - mean * scale
    scale, shift = (_along(op, value, axis, op.rank_of(data)) for value in (scale, shift))
    return op.cast(_affine(op, wide, scale, shift), dtype), mean, variance


def _channels(op: Operation, axis: int) -> int:
    for value, index in ((op.inputs[0], axis), *((value, 0) for value in op.inputs[1:])):
        op.require_rank(value, least=index + 1)
        size = None if value.shape is None else value.shape[index]
        if size is not None:
            return size
    return op.unsupported("requires a known number of channels")


def _epsilon(op: Operation) -> float:
    return op.float("eps", 1e-3)


def _standardised(
    op: Operation, data: Value, axes: list[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """Shift to mean 0 and scale to variance 1; also return mean and deviation, axes kept."""
    over = vector(op, *axes)
    mean = op.emit("ReduceMean", data, over, keepdims=1)
    centred = data - mean
    variance = op.emit("ReduceMean", centred * centred, over, keepdims=1)
    deviation = op.emit("Sqrt", variance + epsilon)
    return centred / deviation, mean, deviation


def _layer_norm(
    op: Operation, data: Value, gamma: Value, beta: Value, axis: int, epsilon: float
) -> tuple[Value, Value, Value]:
    result, mean, inverse = op.emit(
        "LayerNormalization", data, gamma, beta, outputs=3, axis=axis, epsilon=epsilon
    )
    dtype = op.dtype_of(data)
    return result, op.cast(mean, dtype), op.cast(op.emit("Reciprocal", inverse), dtype)


def _along(op: Operation, value: Value, axis: int, rank: int) -> Value:
    """Reshape a vector so that it broadcasts along one axis."""
    if axis == rank - 1:
        return value
    return op.emit("Reshape", value, [-1, *[1] * (rank - 1 - axis)])


def _affine(op: Operation, value: Value, scale: Value, shift: Value) -> Value:
    return value * scale + shift
