"""Reading the JSON of an ARK file: its variant, its nodes or tasks, their ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passlib.dialects import json_text
from passlib.errors import FormatError
from passlib.families.ark.document import GROUPS, Document, OpPlace
from passlib.families.ark.json_values import TYPE_NAMES, kind
from passlib.families.ark.schema import VARIANTS, Variant

_OP_KEYS = ("Type", "Name", "IsVirtual", *GROUPS, "Args")
_NODE_KEYS = ("Id", "ProducerNodeIds", "ConsumerNodeIds")


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
            raise FormatError(f"{path}: expected an object, not {kind(unit)}")
        if plan:
            _require(unit, "Id", int, path)
        else:
            _check_node(unit, path)
        ops += _ops_of(unit, number, path)
    return Document(text, root, _variant(plan, units, ops), plan, units, tuple(ops))


def _check_node(node: dict[str, Any], path: str) -> None:
    _require(node, "Id", int, path)
    for key in _NODE_KEYS[1:]:
        for i, item in enumerate(_require(node, key, list, path)):
            if type(item) is not int:
                raise FormatError(f"{path}.{key}[{i}]: expected an Id, not {kind(item)}")


def _ops_of(unit: dict[str, Any], number: int, path: str) -> Iterator[OpPlace]:
    if "Op" in unit and "Ops" not in unit:
        yield _op(unit["Op"], number, 0, str(number), f"{path}.Op")
        return
    for position, op in enumerate(_require(unit, "Ops", list, path)):
        yield _op(op, number, position, f"{number}.{position}", f"{path}.Ops[{position}]")


def _op(op: Any, unit: int, position: int, key: str, path: str) -> OpPlace:
    if not isinstance(op, dict):
        raise FormatError(f"{path}: expected an object, not {kind(op)}")
    for name, wanted in zip(_OP_KEYS, (str, str, bool, list, list, list, dict), strict=True):
        _require(op, name, wanted, path)
    if not op["Type"] or op["Type"] == "null":
        raise FormatError(f"{path}.Type: {op['Type']!r} is not an operator type")
    return OpPlace(unit, position, key, path, op)


def _variant(plan: bool, units: list[dict[str, Any]], ops: list[OpPlace]) -> Variant:
    """Detect the variant, which no file states."""
    tensors = [t for op in ops for group in GROUPS for t in op.value[group]]
    if any(isinstance(t, dict) and "Pads" in t and "PaddedShape" not in t for t in tensors):
        name = "v1"
    elif any(op.value["Type"] == "Matmul" and "ShapeMNK" in op.value["Args"] for op in ops):
        name = "v1.5"
    elif not plan and any("Ops" in unit for unit in units):
        name = "v2"
    else:
        name = "v3"
    return VARIANTS[name]


def _require(owner: dict[str, Any], key: str, wanted: type, path: str) -> Any:
    place = f"{path}.{key}" if path else key
    if key not in owner:
        raise FormatError(f"{place}: the key is missing")
    value = owner[key]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise FormatError(f"{place}: expected {TYPE_NAMES[wanted]}, not {kind(value)}")
    return value
