"""The JSON of an ARK file, taken apart: its variant, its nodes, their ops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from passlib.dialects import json_text
from passlib.dialects.ark.tensors import kind
from passlib.errors import FormatError

__all__ = ["GROUPS", "Document", "OpPlace", "read_document"]

GROUPS = ("ReadTensors", "WriteTensors", "ResultTensors")

_OP_KEYS = ("Type", "Name", "IsVirtual", *GROUPS, "Args")
_NODE_KEYS = ("Id", "ProducerNodeIds", "ConsumerNodeIds")


@dataclass(frozen=True)
class OpPlace:
    """One op of a file.

    Attributes
    ----------
    unit : int
        Position of its node, or of its task in a plan.
    position : int
        Position in the unit's ``Ops``; 0 for the ``Op`` of one.
    key : str
        The hidden attribute ``__id__`` of its node in the graph.
    path : str
        JSON path, for messages.
    value : dict
        Its JSON object.
    """

    unit: int
    position: int
    key: str
    path: str
    value: dict[str, Any]


@dataclass(frozen=True)
class Document:
    """A file as it was read.

    Attributes
    ----------
    text : bytes
    root : dict
    variant : {"v1", "v1.5", "v2", "v3"}
        The generation of the format, by its structure.
    plan : bool
        Whether it is a plan: what stands in the place of nodes are tasks.
    units : list of dict
        JSON objects of the nodes or tasks.
    ops : tuple of OpPlace
        In the order of the file.
    """

    text: bytes
    root: dict[str, Any]
    variant: Literal["v1", "v1.5", "v2", "v3"]
    plan: bool
    units: list[dict[str, Any]]
    ops: tuple[OpPlace, ...]

    @property
    def units_key(self) -> str:
        """The key of the list of nodes or tasks."""
        return "TaskInfos" if self.plan else "Nodes"

    @property
    def rank(self) -> int:
        """The rank that the file is for."""
        rank: int = self.root["Rank"]
        return rank


def read_document(text: bytes) -> Document:
    """Read a file.

    Parameters
    ----------
    text : bytes

    Raises
    ------
    FormatError
        It is not JSON, or a key that every file has is missing or of the wrong type.
    """
    root = json_text.parse(text)
    if not isinstance(root, dict):
        raise FormatError(f"an ARK file is an object, not {kind(root)}")
    plan = "Nodes" not in root and "TaskInfos" in root
    units_key = "TaskInfos" if plan else "Nodes"
    for key in ("Rank", "WorldSize"):
        _require(root, key, int, "")
    units = _require(root, units_key, list, "")
    if plan:
        _require(root, "ProcessorGroups", list, "")
    ops: list[OpPlace] = []
    for number, unit in enumerate(units):
        path = f"{units_key}[{number}]"
        if not isinstance(unit, dict):
            raise FormatError(f"{path}: an object is wanted, not {kind(unit)}")
        if plan:
            _require(unit, "Id", int, path)
        else:
            _node(unit, path)
        ops += _ops_of(unit, number, path)
    return Document(text, root, _variant(plan, units, ops), plan, units, tuple(ops))


def _node(node: dict[str, Any], path: str) -> None:
    _require(node, "Id", int, path)
    for key in _NODE_KEYS[1:]:
        for i, item in enumerate(_require(node, key, list, path)):
            if type(item) is not int:
                raise FormatError(f"{path}.{key}[{i}]: an Id is wanted, not {kind(item)}")


def _ops_of(unit: dict[str, Any], number: int, path: str) -> Iterator[OpPlace]:
    if "Op" in unit and "Ops" not in unit:
        yield _op(unit["Op"], number, 0, str(number), f"{path}.Op")
        return
    for position, op in enumerate(_require(unit, "Ops", list, path)):
        yield _op(op, number, position, f"{number}.{position}", f"{path}.Ops[{position}]")


def _op(op: Any, unit: int, position: int, key: str, path: str) -> OpPlace:
    if not isinstance(op, dict):
        raise FormatError(f"{path}: an object is wanted, not {kind(op)}")
    for name, wanted in zip(_OP_KEYS, (str, str, bool, list, list, list, dict), strict=True):
        _require(op, name, wanted, path)
    if not op["Type"] or op["Type"] == "null":
        raise FormatError(f"{path}.Type: {op['Type']!r} is no type of operator")
    return OpPlace(unit, position, key, path, op)


def _variant(
    plan: bool, units: list[dict[str, Any]], ops: list[OpPlace]
) -> Literal["v1", "v1.5", "v2", "v3"]:
    tensors = [t for op in ops for group in GROUPS for t in op.value[group]]
    if any(isinstance(t, dict) and "Pads" in t and "PaddedShape" not in t for t in tensors):
        return "v1"
    if any(op.value["Type"] == "Matmul" and "ShapeMNK" in op.value["Args"] for op in ops):
        return "v1.5"
    if plan:
        return "v3"
    return "v2" if any("Ops" in unit for unit in units) else "v3"


def _require(owner: dict[str, Any], key: str, wanted: type, path: str) -> Any:
    place = f"{path}.{key}" if path else key
    if key not in owner:
        raise FormatError(f"{place}: the key is missing")
    value = owner[key]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        names = {int: "a whole number", list: "an array", str: "a text", bool: "true or false"}
        raise FormatError(f"{place}: {names.get(wanted, 'an object')} is wanted, not {kind(value)}")
    return value
