"""ONNX Runtime's fusions, which rewrites must not lose."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from passlib._core import EditableNode
from passlib.library.python import Graph
from passlib.passes.rewriting import Patterns

_ERF: Final = "Add(Erf(Div(x, 1.41421356)), 1)"
_BENT: Final = (
    "Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788456)), 1)",
    "Add(Tanh(Mul(Mul(x, 0.79788456), Add(Mul(Mul(x, 0.044715), x), 1))), 1)",
)
_ROOT: Final = "Sqrt(Add(ReduceMean(_, *_), _))"
_NORMAL: Final = (f"Div(_, {_ROOT})", f"Mul(_, Div(1, {_ROOT}))")
_SCALED: Final = tuple(
    f"Mul({normal}, _:param[rank=1])" for each in _NORMAL for normal in (each, f"Cast({each})")
)
_WIDE: Final = "Unsqueeze(Unsqueeze(m, *_), *_)"
_HEADS: Final = "Transpose(Reshape(Add(MatMul(x, _:param), _:param), *_))"

_PATTERNS: Final = (
    f"Mul(Mul(x, {_ERF}), 0.5)",
    f"Mul(Mul(x, 0.5), {_ERF})",
    *(f"Mul(Mul(x, 0.5), {bent})" for bent in _BENT),
    *_SCALED,
    *(f"Add({scaled}, _:param[rank=1])" for scaled in _SCALED),
    *(
        f"MatMul(Softmax(Add(Div(MatMul({_HEADS}, {_HEADS}), _), "
        f"shared Mul(Sub(1, {wide}), _))), {_HEADS})"
        for wide in (_WIDE, f"Cast({_WIDE})")
    ),
)
"""Gelu, FastGelu, SimplifiedLayerNormalization, LayerNormalization and Attention.

Others lose nothing by what goes into the weights of a layer.
"""

_FUSIONS: Final = Patterns(_PATTERNS)


class Fused:
    """The operators of a graph that ONNX Runtime fuses, searched on first use."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __contains__(self, node: EditableNode) -> bool:
        return node.name in self.names

    @cached_property
    def names(self) -> set[str]:
        """The names of the operators."""
        return _FUSIONS.names(self._graph)
