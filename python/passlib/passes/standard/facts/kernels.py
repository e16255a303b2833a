"""ONNX Runtime's kernels and fusions, which rewrites must not lose."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from passlib._core import EditableNode
from passlib.library.python import Graph
from passlib.passes.rewriting import Patterns

_PLAIN: Final = frozenset(range(1, 14))
_BFLOAT16: Final = frozenset((16,))
_FLOAT8: Final = frozenset((17, 18, 19, 20))
_REAL: Final = frozenset((1, 10, 11))
_BYTES: Final = frozenset((2, 3))

_ANY: Final = ((1, _PLAIN), (13, _BFLOAT16))

KERNELS: Final[dict[str, tuple[tuple[int, frozenset[int]], ...]]] = {
    "Concat": _ANY,
    "DepthToSpace": ((1, _REAL), (11, _BYTES)),
    "Expand": ((8, _PLAIN),),
    "Flatten": ((1, _REAL), (9, _PLAIN), (13, _BFLOAT16)),
    "Gather": _ANY,
    "Identity": (*_ANY, (19, _FLOAT8)),
    "Reshape": (*_ANY, (21, _FLOAT8)),
    "Slice": _ANY,
    "SpaceToDepth": ((1, _REAL | _BYTES),),
    "Split": _ANY,
    "Squeeze": _ANY,
    "Tile": ((6, _PLAIN),),
    "Transpose": (*_ANY, (21, _FLOAT8 | {21, 22}), (25, frozenset((25, 26)))),
    "Unsqueeze": _ANY,
}
"""By operator: operator sets, and the element types (``TensorProto.DataType``) added in each.

Those of ONNX Runtime 1.32 on the CPU; of float16 also where it inserts casts.
"""


def has_kernel(op: str, code: int, opset: int) -> bool:
    """Whether ONNX Runtime runs an operator on a dtype, given as ONNX's code.

    The operator must be in `KERNELS`. The code 0 is an unknown dtype, for which this is false.
    """
    return any(since <= opset and code in codes for since, codes in KERNELS[op])


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
