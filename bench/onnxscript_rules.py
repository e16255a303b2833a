"""The ten patterns of patterns.cc as rules of onnxscript's rewriter."""

from __future__ import annotations

from typing import Any

from onnxscript.rewriter import pattern


def _norm(op: Any, x: Any, e: Any, s: Any, b: Any) -> Any:
    difference = op.Sub(x, op.ReduceMean(x, axes=[-1]))
    variance = op.ReduceMean(op.Pow(difference, 2.0), axes=[-1])
    return op.Add(op.Mul(op.Div(difference, op.Sqrt(op.Add(variance, e))), s), b)


def _layer_norm(op: Any, x: Any, e: Any, s: Any, b: Any) -> Any:
    epsilon = float(e.const_value.numpy())
    return op.LayerNormalization(x, s, b, axis=-1, epsilon=epsilon)


def _tanh_gelu(op: Any, x: Any) -> Any:
    inner = op.Mul(op.Add(x, op.Mul(op.Pow(x, 3.0), 0.044715)), 0.7978845)
    return op.Mul(op.Mul(x, op.Add(op.Tanh(inner), 1.0)), 0.5)


def _transposes(op: Any, x: Any) -> Any:
    return op.Transpose(op.Transpose(x, perm=[0, 2, 1, 3]), perm=[0, 2, 1, 3])


PAIRS = (
    (
        lambda op, x, w, b: op.Add(op.MatMul(x, w), b),
        lambda op, x, w, b: op.Gemm(x, w, b),
    ),
    (
        lambda op, x: op.Mul(op.Mul(x, op.Add(op.Erf(op.Div(x, 1.4142135)), 1.0)), 0.5),
        lambda op, x: op.Gelu(x),
    ),
    (_tanh_gelu, lambda op, x: op.Gelu(x, approximate="tanh")),
    (_norm, _layer_norm),
    (_transposes, lambda op, x: op.Identity(x)),
    (lambda op, x, r, s: op.Reshape(op.Reshape(x, r), s), lambda op, x, r, s: op.Reshape(x, s)),
    (
        lambda op, x: op.Mul(x, op.Sigmoid(x)),
        lambda op, x: op.QuickGelu(x, alpha=1.0, _domain="com.microsoft"),
    ),
    (lambda op, x, w, b: op.Add(op.Conv(x, w), b), lambda op, x, w, b: op.Conv(x, w, b)),
    (lambda op, x: op.Relu(op.Relu(x)), lambda op, x: op.Relu(x)),
    (lambda op, x, a: op.Squeeze(op.Unsqueeze(x, a), a), lambda op, x, a: op.Identity(x)),
)
"""Patterns and their replacements. Inputs of sums and products match in either order."""

RULES = [pattern.RewriteRule(*pair) for pair in PAIRS]
