"""Activation functions with attributes: Activation and LeakyReLU."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.elementwise.transcendental import logistic
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
        return op.emit("Neg", op.emit("Softplus", op.emit("Neg", data)))
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
        return op.emit("Reshape", gamma, vector(op, -1, *[1] * trailing))
    return op.emit("Unsqueeze", gamma, vector(op, *range(2, trailing + 2)))
