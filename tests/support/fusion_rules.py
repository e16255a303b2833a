"""The eight fusions of tests/plugins/fusions.cc as rules in Python, under names of their own."""

from __future__ import annotations

import json
from typing import Any

import passlib as pl

ONNX = ["onnx"]


def per_channel(m: pl.Match, value: Any) -> Any:
    """The numbers of a parameter, one or as many as output channels; None if it has others."""
    weight, array = m.array(m.w), m.array(value)
    channels = array.size == weight.shape[0] and array.shape[1 - weight.ndim :][:1] == (array.size,)
    fits = array.size == 1 or (channels and array.ndim >= weight.ndim - 1)
    return array.reshape(-1) if fits and array.ndim <= weight.ndim else None


@pl.rewrite("c = Conv(x, w:param, b?:param)\n y = Add(c, a:param)", dialects=ONNX)
def conv_add(m: pl.Match) -> Any:
    """Conv and Add become Conv with a bias."""
    added = per_channel(m, m.a)
    if added is None or (m.b is None and added.size != m.array(m.w).shape[0]):
        return None
    bias = m.parameter("b", added if m.b is None else m.array(m.b) + added)
    return m.op("Conv", m.x, m.w, bias, **m.attributes(m.c))


@pl.rewrite("c = Conv(x, w:param, b?:param)\n y = Mul(c, s:param)", dialects=ONNX)
def conv_mul(m: pl.Match) -> Any:
    """Mul behind Conv goes into its weight and bias."""
    scale, weight = per_channel(m, m.s), m.array(m.w)
    if scale is None:
        return None
    made = m.parameter("w", weight * scale.reshape(-1, *[1] * (weight.ndim - 1)))
    bias = None if m.b is None else m.parameter("b", m.array(m.b) * scale)
    return m.op("Conv", m.x, made, bias, **m.attributes(m.c))


@pl.rewrite("y = Add(MatMul(x, w:param[rank=2]), b:param)", dialects=ONNX, shapes=True)
def matmul_add(m: pl.Match) -> Any:
    """MatMul and Add become Gemm."""
    fits = m.x.shape is not None and len(m.x.shape) == 2 and m.broadcasts(m.b, m.y)
    return m.op("Gemm", m.x, m.w, m.b) if fits else None


@pl.rewrite("y = Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1)), 0.5)", dialects=ONNX)
def gelu_erf(m: pl.Match) -> Any:
    """Five nodes with Erf become Gelu."""
    return m.op("Gelu", m.x) if m.operator_set() >= 20 else None


@pl.rewrite(
    """
    inner = Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845)
    y = Mul(Mul(x, Add(Tanh(inner), 1)), 0.5)
    """,
    dialects=ONNX,
)
def gelu_tanh(m: pl.Match) -> Any:
    """Eight nodes with Tanh become Gelu."""
    return m.op("Gelu", m.x, approximate="tanh") if m.operator_set() >= 20 else None


_MEANS = ("ReduceMean[axes=[-1], keepdims?=1]({})", "ReduceMean[keepdims?=1]({}, -1)")
"""The mean along the last axis, before operator set 18 and from then on."""


@pl.rewrite(
    [
        f"""
        d = Sub(x, {mean.format("x")})
        v = {mean.format("Pow(d, 2)")}
        y = Add(Mul(Div(d, Sqrt(Add(v, e:param))), s:param[rank=1]), b:param[rank=1])
        """
        for mean in _MEANS
    ],
    dialects=ONNX,
    shapes=True,
)
def layer_norm(m: pl.Match) -> Any:
    """Nine nodes become LayerNormalization."""
    if m.operator_set() < 17 or not m.broadcasts(m.s, m.x):
        return None
    epsilon = float(m.array(m.e))
    return m.op("LayerNormalization", m.x, m.s, m.b, axis=-1, epsilon=epsilon)


@pl.rewrite("y = Transpose[perm=$second](Transpose[perm=$first](x))", dialects=ONNX)
def transposes(m: pl.Match) -> Any:
    """Two Transpose become one, or none."""
    first, second = json.loads(m.attrs["first"]), json.loads(m.attrs["second"])
    order = [first[axis] for axis in second]
    return m.x if order == sorted(order) else m.op("Transpose", m.x, perm=order)


@pl.rewrite("y = Reshape[allowzero?=0](Reshape(x, _), s:param)", dialects=ONNX)
def reshapes(m: pl.Match) -> Any:
    """Two Reshape become one, if no size is that of the first result."""
    return None if 0 in m.array(m.s) else m.op("Reshape", m.x, m.s)


@pl.rewrite("y = Mul(x, Sigmoid(x))", dialects=ONNX)
def silu(m: pl.Match) -> Any:
    """x * Sigmoid(x) becomes QuickGelu."""
    return m.op("com.microsoft::QuickGelu", m.x, alpha=1.0)


RULES = {
    "Conv and Add": "conv_add",
    "Conv and Mul": "conv_mul",
    "Conv with a bias, and Add": "conv_add",
    "Conv with a bias, and Mul": "conv_mul",
    "MatMul and Add": "matmul_add",
    "GELU with Erf": "gelu_erf",
    "GELU with Tanh": "gelu_tanh",
    "layer normalization": "layer_norm",
    "layer normalization, axes as an input": "layer_norm",
    "two Transpose": "transposes",
    "Transpose and its inverse": "transposes",
    "two Reshape": "reshapes",
    "SiLU": "silu",
}
"""The rule for each model of `fusion_models.FUSIONS`."""
