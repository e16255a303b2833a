"""Reading the tensors of a file's ops."""

from __future__ import annotations

from typing import Any

from passlib.errors import UnsoundFileError
from passlib.families.ark.document import GROUPS, Document
from passlib.families.ark.operators import FileOp
from passlib.families.ark.tensors import Tensor, read_tensor, same_memory


def read_ops(document: Document) -> list[FileOp]:
    """Read the tensors of all ops, in the order of the file.

    ARK works by buffer. Plans that were split by hand have several boxes under one Id, returned by
    several ops, so in a plan these are accepted.

    Raises
    ------
    FormatError
        A tensor is malformed.
    UnsoundFileError
        Two descriptions of one tensor differ, or two ops return it.
    """
    known: dict[int, tuple[Tensor, str]] = {}
    makers: dict[int, str] = {}
    ops = []
    for place in document.ops:
        groups = []
        for group in GROUPS:
            tensors = []
            for i, value in enumerate(place.value[group]):
                tensors.append(_tensor(value, f"{place.path}.{group}[{i}]", known, document.plan))
            groups.append(tuple(tensors))
        for i, tensor in enumerate(groups[2]):
            path = f"{place.path}.ResultTensors[{i}]"
            if makers.setdefault(tensor.id, path) != path and not document.plan:
                raise UnsoundFileError(
                    f"{path}: tensor {tensor.id} is already a result of {makers[tensor.id]}"
                )
        reads, writes, results = groups
        ops.append(FileOp(place, reads, writes, results, document.rank))
    return ops


def _tensor(value: Any, path: str, known: dict[int, tuple[Tensor, str]], plan: bool) -> Tensor:
    number = value.get("Id") if isinstance(value, dict) else None
    first = known.get(number) if type(number) is int else None
    if first is not None and first[0].source == value:
        return first[0]
    tensor = read_tensor(value, path)
    if first is None:
        known[tensor.id] = tensor, path
    elif tensor.identity != first[0].identity and not (plan and same_memory(tensor, first[0])):
        raise UnsoundFileError(f"{path}: tensor {tensor.id} is described differently at {first[1]}")
    return tensor
