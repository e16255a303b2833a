"""Ops of a file with their tensors read, and the attributes that show them to passes."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from passlib.dialects.ark import schema
from passlib.dialects.ark.document import GROUPS, Document, OpPlace
from passlib.dialects.ark.tensors import Tensor, compact_json, read_tensor
from passlib.errors import UnsoundFileError

__all__ = ["CONFIG", "EFFECTS", "ID", "OUTPUTS", "PARTS", "READS", "VIRTUAL", "FileOp", "read_ops"]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

ID = "__id__"
"""The node's place in the file: ``3`` for an Op, ``3.1`` for one of several."""
OUTPUTS = "__outputs__"
"""The tensors that a node gives, as a JSON array of the file's own objects."""
READS = "__reads__"
"""How many of a node's inputs are read; behind them are those that it writes."""
EFFECTS = "__effects__"
"""``True`` on nodes that must stay even if nobody uses what they give."""
VIRTUAL = "__virtual__"
"""``True`` on nodes that compute nothing, but for those of type Tensor, which never do."""
PARTS = "__parts__"
"""On a view of several inputs, those that lie in its own buffer; it only waits for the others."""
CONFIG = "__config__"
"""In plans, the ``Config`` of an op as JSON."""


class FileOp(NamedTuple):
    """One op of a file.

    Attributes
    ----------
    place : OpPlace
    reads, writes, results : tuple of Tensor
    rank : int
        The rank that the file is for.
    """

    place: OpPlace
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    rank: int = -1

    @property
    def type(self) -> str:
        """Type of the operator."""
        name: str = self.place.value["Type"]
        return name

    @property
    def virtual(self) -> bool:
        """Whether it only names memory."""
        return bool(self.place.value["IsVirtual"]) and not self.writes

    @property
    def declares(self) -> bool:
        """Whether it declares a buffer: a view of nothing."""
        return self.virtual and not self.reads and len(self.results) == 1

    @property
    def effects(self) -> bool:
        """Whether it must stay even if nobody uses what it gives: other ranks may see it."""
        if self.virtual:
            return False
        operator = schema.find(self.type)
        return (
            operator is None
            or operator.effects
            or any(
                tensor.rank not in (-1, self.rank)
                or tensor.tags("SendTags")
                or tensor.tags("RecvTags")
                for tensor in self.writes
            )
        )

    def attributes(self) -> dict[str, str]:
        """Give the attributes that its node in the graph has."""
        value = self.place.value
        attrs = {name: argument_text(tagged) for name, tagged in value["Args"].items()}
        attrs[ID] = self.place.key
        attrs[OUTPUTS] = tensors_text(self.results)
        if self.virtual:
            if self.type != schema.TENSOR:
                attrs[VIRTUAL] = "True"
            if len(self.reads) > 1 and self.results:
                buffer = self.results[0].buffer
                same = [i for i, tensor in enumerate(self.reads) if tensor.buffer == buffer]
                attrs[PARTS] = compact_json(same)
        else:
            attrs[READS] = str(len(self.reads))
        if self.effects:
            attrs[EFFECTS] = "True"
        if "Config" in value:
            attrs[CONFIG] = compact_json(value["Config"])
        return attrs


def read_ops(document: Document) -> list[FileOp]:
    """Read the tensors of all ops, in the order of the file.

    Raises
    ------
    FormatError
        A tensor is malformed.
    UnsoundFileError
        Two descriptions of one tensor differ, or two ops give it.
    """
    known: dict[int, tuple[Tensor, str]] = {}
    makers: dict[int, str] = {}
    ops = []
    for place in document.ops:
        groups = []
        for group in GROUPS:
            tensors = []
            for i, value in enumerate(place.value[group]):
                tensors.append(_tensor(value, f"{place.path}.{group}[{i}]", known))
            groups.append(tuple(tensors))
        for i, tensor in enumerate(groups[2]):
            path = f"{place.path}.ResultTensors[{i}]"
            if makers.setdefault(tensor.id, path) != path:
                raise UnsoundFileError(
                    f"{path}: tensor {tensor.id} is a result of {makers[tensor.id]} already"
                )
        reads, writes, results = groups
        ops.append(FileOp(place, reads, writes, results, document.rank))
    return ops


def argument_text(tagged: Any) -> str:
    """Spell an argument, ``{"BOOL": true}``, as the text that a pass sees: ``True``."""
    if not isinstance(tagged, dict) or not tagged:
        return compact_json(tagged)
    value = next(iter(tagged.values()))
    if isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else compact_json(value)


def tensors_text(tensors: tuple[Tensor, ...]) -> str:
    """Spell tensors as a JSON array."""
    return _encode([tensor.source for tensor in tensors])


def _tensor(value: Any, path: str, known: dict[int, tuple[Tensor, str]]) -> Tensor:
    number = value.get("Id") if isinstance(value, dict) else None
    first = known.get(number) if type(number) is int else None
    if first is not None and first[0].source == value:
        return first[0]
    tensor = read_tensor(value, path)
    if first is None:
        known[tensor.id] = tensor, path
    elif tensor[:-1] != first[0][:-1]:
        raise UnsoundFileError(f"{path}: tensor {tensor.id} is described differently at {first[1]}")
    return tensor
