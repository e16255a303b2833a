"""Activation functions with attributes: Activation and LeakyReLU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import extent, places, reshaped, reshaped_to, scaled, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.elementwise.unary import logistic
from passlib.mxnet.lowering.real_arithmetic import is_real, larger
from passlib.mxnet.lowering.table import table

_SIMPLE = {
    "relu": "Relu",
    "softrelu": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
    "mish": "Mish",
}

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@table.register("Activation", "_npx_activation")
def activation(op: Operation) -> Value:
    """Apply one function to every element, shape unchanged.

    ``act_type`` is one of MXNet 1.9's (relu, sigmoid, softrelu = log(1 + exp(x)), softsign,
    tanh) or of those that 2.0 added (log_sigmoid, mish).
    """
    kind = op.string("act_type", choices=(*_SIMPLE, "sigmoid", "log_sigmoid"))
    (data,) = op.operands(1)
    if kind == "sigmoid":
        return logistic(op, data)
    if kind == "log_sigmoid":
        return -op.emit("Softplus", -data)
    return op.emit(_SIMPLE[kind], data)


@table.register("LeakyReLU", "_npx_leaky_relu")
def leaky_relu(op: Operation) -> Value | Sequence[Value]:
    """Apply a rectifier with a slope below zero, shape unchanged.

    ``leaky``: slope * x; ``elu``: slope * (exp(x) - 1); ``selu``: the same with two fixed
    constants; ``gelu``: x * Phi(x); ``prelu``: a learned slope, one for all or one per channel
    (axis 1); ``rrelu``: the mean of ``lower_bound`` and ``upper_bound`` outside training.
    Only ``rrelu`` has a second output, its mask.
    """
    kind = op.string(
        "act_type",
        "leaky",
        choices=("leaky", "elu", "selu", "gelu", "gelu_erf", "gelu_tanh", "prelu", "rrelu"),
    )
    data = op.inputs[0]
    if kind == "elu":
        return op.emit("Elu", data, alpha=op.float("slope", 0.25))
    if kind == "selu":
        return op.emit("Selu", data, alpha=_SELU_ALPHA, gamma=_SELU_SCALE)
    if kind.startswith("gelu"):
        approximate = "tanh" if kind == "gelu_tanh" else "none"
        return op.emit("Gelu", data, approximate=approximate)
    if kind == "prelu":
        return op.emit("PRelu", data, _slope(op, data, op.inputs[1]))
    if kind == "leaky":
        return op.emit("LeakyRelu", data, alpha=op.float("slope", 0.25))
    if op.train:
        op.unsupported("draws random slopes in training", "act_type")
    why = "the random slopes of rrelu are not provided"
    hidden = op.declare(data.dtype, data.shape, why)
    middle = (op.float("lower_bound", 0.125) + op.float("upper_bound", 0.334)) / 2
    return op.emit("LeakyRelu", data, alpha=middle), hidden


def _slope(op: Operation, data: Value, gamma: Value) -> Value:
    """Reshape the slopes so that they broadcast: a vector for axis 1, a matrix for axes 0 and 1."""
    rank = op.rank_of(gamma)
    if rank > 2:
        raise Misfit(f"the slopes have {rank} axes, at most 2 are possible")
    trailing = op.rank_of(data) - 2
    if trailing <= 0:
        return gamma
    if rank == 1:
        return op.emit("Reshape", gamma, [-1, *[1] * trailing])
    return op.emit("Unsqueeze", gamma, [*range(2, trailing + 2)])


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
    masked = op.where(inside, data, -np.inf)
    zero = op.constant_like(0, data)
    return _as_wanted(op, op.where(inside, op.emit("Softmax", masked, axis=axis), zero))


def _unmasked(name: str, op: Operation) -> Value:
    """Apply the logarithm of `softmax`, or `softmax` to the negated input."""
    if op.bool("use_length", False):
        op.unsupported(f"a masked {name} is not defined", "use_length")
    if name == "softmin":
        return _normalized("Softmax", op, _scaled(op, sign=-1.0))
    return _normalized("LogSoftmax", op, _scaled(op, sign=1.0))


table.register("log_softmax", "_npx_log_softmax")(partial(_unmasked, "log_softmax"))
table.register("softmin")(partial(_unmasked, "softmin"))


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
    index = op.emit("Unsqueeze", op.cast(label, "int64"), [1])
    chosen = op.emit("GatherElements", probabilities, index, axis=1)
    limited = larger(op, chosen, op.constant_like(1e-8, chosen))
    return -op.emit("ReduceSum", op.emit("Log", limited), [0], keepdims=0)


def _normalized(onnx_operator: str, op: Operation, data: Value) -> Value:
    """Apply an operator along ``axis``; a scalar has the axes 0 and -1."""
    axis = op.int("axis", -1)
    if op.rank_of(data) == 0 and axis in (0, -1):
        line = op.emit("Unsqueeze", data, [0])
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
    return data if factor == 1.0 else data * factor


def _inside(op: Operation, data: Value, axis: int) -> Value:
    """Return whether each position along ``axis`` is below the length, to broadcast to the data."""
    length = op.emit("Unsqueeze", op.inputs[1], [axis])
    shape: Sequence[int] = [-1 if i == axis else 1 for i in range(op.rank_of(data))]
    position = op.emit("Reshape", places(op, data, axis), shape)
    return op.cast(position, op.dtype_of(length)) < length


def _flat_softmax(op: Operation, data: Value) -> Value:
    if op.rank_of(data) == 2:
        return op.emit("Softmax", data, axis=1)
    flat = op.emit("Softmax", op.emit("Flatten", data, axis=1), axis=1)
    return op.emit("Reshape", flat, op.emit("Shape", data))


@table.register("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(op: Operation) -> Value:
    """Compute scores of self-attention: (L, B, H * 3 * D) to (B * H, L, L), times 1 / sqrt(D)."""
    (projections,) = op.operands(1)
    queries, keys = (_heads(op, projections, 3, part) for part in (0, 1))
    return _scores(op, queries, keys)


@table.register("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(op: Operation) -> Value:
    """Weight values by attention: (L, B, H * 3 * D) and (B * H, L, L) to (L, B, H * D)."""
    projections, attention = op.operands(2)
    return _weighted(op, attention, _heads(op, projections, 3, 2))


@table.register("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(op: Operation) -> Value:
    """Score queries (Q, B, H * D) by keys and values (K, B, H * 2 * D): (B * H, Q, K)."""
    queries, projections = op.operands(2)
    return _scores(op, _heads(op, queries, 1, 0), _heads(op, projections, 2, 0))


@table.register("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(op: Operation) -> Value:
    """Weight values by attention: (K, B, H * 2 * D) and (B * H, Q, K) to (Q, B, H * D)."""
    projections, attention = op.operands(2)
    return _weighted(op, attention, _heads(op, projections, 2, 1))


@table.register("_contrib_div_sqrt_dim")
def div_sqrt_dim(op: Operation) -> Value:
    """Divide by the square root of the size of the last axis, shape unchanged."""
    (data,) = op.operands(1)
    op.require_rank(data, least=1)
    last = op.rank_of(data) - 1
    size = None if data.shape is None else data.shape[last]
    if size is not None:
        root: float = size**0.5
        return data / root
    return data / op.emit("Sqrt", op.cast(extent(op, data, last), op.dtype_of(data)))


def _heads_of(op: Operation) -> int:
    heads = op.int("heads")
    if heads < 1:
        op.invalid("must be at least 1", "heads")
    return heads


def _heads(op: Operation, projections: Value, parts: int, part: int) -> Value:
    """Extract one part of the projections, as (B * H, L, D)."""
    heads = _heads_of(op)
    op.require_rank(projections, 3)
    width = op.size_of(projections, 2)
    if width % (heads * parts):
        op.invalid(f"does not divide the size {width} of the last axis", "heads")
    depth = width // (heads * parts)
    rows = scaled(op, extent(op, projections, 1), heads)
    sizes = [extent(op, projections, 0), rows, vector(op, parts, depth)]
    split = reshaped_to(op, projections, sizes)
    chosen = op.emit("Gather", split, op.constant(part, "int64"), axis=2)
    return op.emit("Transpose", chosen, perm=[1, 0, 2])


def _scores(op: Operation, queries: Value, keys: Value) -> Value:
    depth = op.size_of(queries, 2)
    if not depth:
        op.unsupported("the queries have no elements")
    scale: float = depth**-0.5
    return (queries * scale) @ op.emit("Transpose", keys, perm=[0, 2, 1])


def _weighted(op: Operation, attention: Value, values: Value) -> Value:
    heads = _heads_of(op)
    weighted = attention @ values
    depth = op.size_of(weighted, 2)
    by_time = op.emit("Transpose", weighted, perm=[1, 0, 2])
    batch = scaled(op, extent(op, weighted, 0), 1, heads)
    return reshaped_to(op, by_time, [extent(op, weighted, 1), batch, vector(op, heads * depth)])
