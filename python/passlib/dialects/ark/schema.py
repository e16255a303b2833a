"""Operators of ARK: how many tensors they take and give, their arguments, their effects."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

__all__ = ["ARGUMENT_TYPES", "DERIVED", "TENSOR", "Operator", "find", "names"]

TENSOR = "Tensor"
"""The virtual operator: declares a buffer, or names a part of one anew."""

ARGUMENT_TYPES = frozenset(
    ("INT", "INT64", "UINT32", "UINT64", "BOOL", "FLOAT", "DIMS", "TENSOR", "OFFSET")
)

DERIVED = ("InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB")
"""Arguments of Matmul in the files of May 2024, which follow from its tensors."""


class Operator(NamedTuple):
    """One operator.

    Attributes
    ----------
    reads : int
        Tensors that it reads.
    writes : int
        Tensors that it writes at least; `many` says whether more are allowed.
    results : int
        Tensors that it gives. The first ones describe the same memory as what it writes.
    arguments : mapping of str to str
        Types of its arguments by name. All are needed.
    effects : bool
        Whether it does something that no result shows, so that it must not be removed.
    many : bool
        Whether it may write more tensors than it gives results.
    """

    reads: int
    writes: int = 1
    results: int = 1
    arguments: MappingProxyType[str, str] = MappingProxyType({})
    effects: bool = False
    many: bool = False


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
    """Look up an operator other than the virtual ones; None if it is not known."""
    return _OPERATORS.get(name)


def names() -> list[str]:
    """Names of all operators but the virtual ones, sorted."""
    return sorted(_OPERATORS)
