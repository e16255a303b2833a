"""Element types for which ONNX Runtime has the operators that rewrites introduce."""

from __future__ import annotations

from typing import Final

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
    """Whether ONNX Runtime runs an operator on an element type.

    Parameters
    ----------
    op : str
        One of those that standard passes put in place of others.
    code : int
        As in ``TensorProto.DataType``; 0 for an unknown type, for which no kernel is certain.
    opset : int
    """
    return any(since <= opset and code in codes for since, codes in KERNELS[op])
