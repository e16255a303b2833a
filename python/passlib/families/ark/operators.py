"""Ops of a file with their tensors, and the attributes that show them to passes."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from passlib.dialects.json_text import compact_json
from passlib.families.ark import schema
from passlib.families.ark.document import OpPlace
from passlib.families.ark.tensors import Tensor

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

ID = "__id__"
"""The node's place in the file: ``3`` for an Op, ``3.1`` for one of several."""
OUTPUTS = "__outputs__"
"""The tensors that a node returns, as a JSON array of the file's own objects."""
READS = "__reads__"
"""How many of a node's inputs are read; the rest are written."""
EFFECTS = "__effects__"
"""``True`` on nodes that must stay even if their outputs are unused."""
VIRTUAL = "__virtual__"
"""``True`` on nodes that compute nothing; nodes of type Tensor never do and lack it."""
PARTS = "__parts__"
"""On a view with several inputs, those that lie in its buffer; it only waits for the others."""
CONFIG = "__config__"
"""In plans, the ``Config`` of an op as JSON."""


class FileOp(NamedTuple):
    """One op of a file for a rank."""

    place: OpPlace
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    rank: int = -1

    @property
    def type(self) -> str:
        """The type of its operator."""
        name: str = self.place.value["Type"]
        return name

    @property
    def virtual(self) -> bool:
        """Whether it declares or views memory and computes nothing."""
        return bool(self.place.value["IsVirtual"]) and not self.writes

    @property
    def declares(self) -> bool:
        """Whether it declares a buffer: it is virtual and reads nothing."""
        return self.virtual and not self.reads and len(self.results) == 1

    @property
    def effects(self) -> bool:
        """Whether it must stay even if its results are unused, since other ranks may see it."""
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
        """Return the attributes of its node in the graph."""
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


def argument_text(tagged: Any) -> str:
    """Return an argument such as ``{"BOOL": true}`` as the text that passes see, ``True``."""
    if not isinstance(tagged, dict) or not tagged:
        return compact_json(tagged)
    value = next(iter(tagged.values()))
    if isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else compact_json(value)


def tensors_text(tensors: tuple[Tensor, ...]) -> str:
    """Return tensors as a JSON array."""
    return _encode([tensor.source for tensor in tensors])
