"""ARK's operators with their tensors, arguments and effects, and its file formats."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

TENSOR = "Tensor"
"""The virtual operator: declares a buffer, or makes a view of one."""

ARGUMENT_TYPES = frozenset(
    ("INT", "INT64", "UINT32", "UINT64", "BOOL", "FLOAT", "DIMS", "TENSOR", "OFFSET")
)

DERIVED = ("InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB")
"""Arguments of Matmul in files of May 2024, which follow from its tensors."""


class Variant(NamedTuple):
    """One generation of the file format."""

    name: str
    padding: str
    """The key of a tensor's padding."""
    derived_arguments: bool
    """Whether Matmul has the `DERIVED` arguments."""
    single_op: bool
    """Whether a node of a model file holds one ``Op``, not a list of ``Ops``."""
    padded_products: bool
    """Whether the padding of a Matmul must follow from that of its operands."""


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("v1", "Pads", True, False, False),
        Variant("v1.5", "PaddedShape", True, False, False),
        Variant("v2", "PaddedShape", False, False, False),
        Variant("v3", "PaddedShape", False, True, True),
    )
}
"""The generations of the format, by name."""


class Operator(NamedTuple):
    """One operator."""

    reads: int
    """Number of tensors that it reads."""
    writes: int = 1
    """Least number of tensors that it writes; `many` allows more."""
    results: int = 1
    """Number of tensors that it returns. The first ones describe the memory that it writes."""
    arguments: MappingProxyType[str, str] = MappingProxyType({})
    """Types of its arguments by name. All are required."""
    effects: bool = False
    """Whether it has side effects, so that it must not be removed."""
    many: bool = False
    """Whether it may write more tensors than it returns."""


def _operator(
    reads: int,
    writes: int = 1,
    results: int = 1,
    *,
    effects: bool = False,
    many: bool = False,
    **arguments: str,
) -> Operator:
    return Operator(reads, writes, results, MappingProxyType(arguments), effects, many)


_BINARY = _operator(2)
_UNARY = _operator(1)
_REDUCTION = _operator(1, Axis="INT", KeepDim="BOOL")

_OPERATORS = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Rope", "Embedding"), _BINARY),
    **dict.fromkeys(("Exp", "Sqrt", "Rsqrt", "Relu", "Sigmoid", "Gelu", "Copy", "Cast"), _UNARY),
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMean"), _REDUCTION),
    **dict.fromkeys(("ScalarAdd", "ScalarMul"), _operator(1, Factor="FLOAT")),
    "ScalarAssign": _operator(0, Value="FLOAT"),
    "Matmul": _operator(2, TransposeInput="BOOL", TransposeOther="BOOL"),
    "Transpose": _operator(1, Permutation="DIMS"),
    "Noop": _operator(1, 0, 0, effects=True),
    "Send": _operator(1, effects=True),
    "SendDone": _operator(1, 0, 1, effects=True),
    "Recv": _operator(1, effects=True),
    "SendPacket": _operator(1, effects=True, Flag="UINT32"),
    "RecvPacket": _operator(2, effects=True, Flag="UINT32"),
    "RecvReduceSend": _operator(2, effects=True, many=True, NPeers="UINT32", Rank="INT"),
    "RecvReduceSendPacket": _operator(
        2, effects=True, many=True, Flag="UINT32", NPeers="UINT32", Rank="INT"
    ),
    "DeviceSync": _operator(1, effects=True, PeerNum="INT", Rank="INT"),
}


def find(name: str) -> Operator | None:
    """Look up an operator; None if it is virtual or unknown."""
    return _OPERATORS.get(name)


def names() -> list[str]:
    """Return the names of all operators except the virtual one, sorted."""
    return sorted(_OPERATORS)
