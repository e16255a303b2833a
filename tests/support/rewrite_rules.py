"""The rewrites of tests/plugins/rewrites.cc as rules in Python."""

from __future__ import annotations

from typing import Any

import passlib as pl

ONNX = ["onnx"]


@pl.rewrite("y = Relu(x)", dialects=ONNX)
def endless(m: pl.Match) -> Any:
    """Makes what it replaces."""
    return m.op("Relu", m.x)


@pl.rewrite("y = Relu(x)", dialects=ONNX)
def growing(m: pl.Match) -> Any:
    """Leaves one match more with every replacement."""
    return m.op("Abs", m.op("Relu", m.op("Relu", m.x)))


@pl.rewrite("y = Relu|Abs|Ceil(a)", dialects=ONNX)
def idempotent(m: pl.Match) -> Any:
    """Merges two equal functions in a row."""
    return m.a if m.a.node.op == m.y.node.op else None


@pl.rewrite("y = Tanh|Sigmoid(Neg(x))", dialects=ONNX)
def inverted(m: pl.Match) -> Any:
    """Takes Neg into the function behind it."""
    return m.op(f"my::Inverted{m.y.node.op}", m.x)


@pl.rewrite("y = Concat[axis=$a](*before, Concat[axis=$a](*inner))", dialects=ONNX)
def flatten_concat(m: pl.Match) -> Any:
    """Merges a Concat into another."""
    return m.op("Concat", *m.before, *m.inner, axis=m.attrs["a"])


@pl.rewrite("c = Conv(x, w, b?)\n y = Relu(c)", dialects=ONNX)
def conv_relu(m: pl.Match) -> Any:
    """Merges Relu into Conv, which may have a bias."""
    return m.op("my::ConvRelu", m.x, m.w, m.b, **m.attributes(m.c), relu=1)


@pl.rewrite("y = Clip(Neg(x), low?, high?)", dialects=ONNX)
def clip_below(m: pl.Match) -> Any:
    """Keeps an absent bound absent."""
    return m.op("my::ClipNeg", m.x, m.low, m.high) if m.low is None else None


@pl.rewrite("a = MatMul(x, v:param)\n b = MatMul(x, w:param)", dialects=ONNX)
def pair_products(m: pl.Match) -> Any:
    """Merges two products of a value."""
    return m.op("my::Pair", m.x, m.v, m.w, num_outputs=2)


@pl.rewrite("a, b = Split[num_outputs=2](x)", dialects=ONNX)
def swap_halves(m: pl.Match) -> Any:
    """Replaces both outputs of Split."""
    p, q = m.op("my::Halves", m.x, num_outputs=2)
    return {"b": m.op("Neg", q), "a": m.op("Neg", p)}


@pl.rewrite("y = Mul(x, s:param[rank=0])", dialects=ONNX)
def scale(m: pl.Match) -> Any:
    """Makes a factor an attribute."""
    return m.op("my::Scale", m.x, by=float(m.array(m.s)))


@pl.rewrite("y = MatMul(Mul(x, s:param[rank=0]), w:param)", dialects=ONNX)
def fold_factor(m: pl.Match, *, below: float = 10.0, by: str = "scaled") -> Any:
    """Moves a factor into the weight of a product."""
    if m.array(m.s) >= below:
        return None
    return m.op("MatMul", m.x, m.parameter(by, m.array(m.s) * m.array(m.w)))


NAMES = {
    "endlessInC": "endless",
    "growingInC": "growing",
    "idempotentInC": "idempotent",
    "invertedInC": "inverted",
    "flattenConcatInC": "flatten_concat",
    "convReluInC": "conv_relu",
    "clipBelowInC": "clip_below",
    "pairProductsInC": "pair_products",
    "swapHalvesInC": "swap_halves",
    "scaleInC": "scale",
    "foldFactorInC": "fold_factor",
}
"""The rule for each pass of the library."""
