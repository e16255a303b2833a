"""Conversion of op arguments between typed JSON and the text that passes see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.dialects.json_text import JsonNumber
from passlib.errors import UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.document import plain_json
from passlib.families.ark.operators import argument_text
from passlib.graph import attributes as attribute_text
from passlib.graph.attributes import blame
from passlib.graph.node import Node

LIMITS = {
    "INT": (-(1 << 31), 1 << 31),
    "INT64": (-(1 << 63), 1 << 63),
    "UINT32": (0, 1 << 32),
    "UINT64": (0, 1 << 64),
}
"""The range of each integer type: its least value, and one more than its greatest."""

LARGEST_FLOAT = float(np.finfo(np.float32).max)


def visible(node: Node) -> dict[str, str]:
    """Return a node's attributes without hidden ones, whose names have double underscores."""
    return {k: v for k, v in node.attrs.items() if not (k.startswith("__") and k.endswith("__"))}


def tagged(node: Node, original: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the ``Args`` of a node.

    Arguments of the file's ``original`` whose text is unchanged are taken from there; changed ones
    keep their type. Raises `UnsupportedError` if an argument is missing, or a value does not fit
    its type.
    """
    known = original or {}
    texts = visible(node)
    operator = schema.find(node.op)
    types = dict(operator.arguments) if operator is not None else {}
    types.update(dict.fromkeys(schema.DERIVED, "DIMS"))
    order = [*(name for name in known if name in texts), *sorted(texts.keys() - known.keys())]
    if list(known) == sorted(known):
        order.sort()  # as in ARK's serializer
    result: dict[str, Any] = {}
    for name in order:
        old = known.get(name)
        if old is not None and argument_text(old) == texts[name]:
            result[name] = old
            continue
        tag = next(iter(old), None) if isinstance(old, dict) else None
        tag = tag or types.get(name) or _guess(texts[name])
        result[name] = {tag: _value(node, name, tag)}
    for name in operator.arguments if operator is not None else ():
        if name not in result:
            raise UnsupportedError(f"{blame(node)}: the attribute {name!r} is missing")
    return result


def from_front(
    args: Mapping[str, Any], original: Mapping[str, Any], rank: int
) -> Mapping[str, Any]:
    """Return ``Args`` with a new negative ``Axis`` counted from the front, as in ARK's files."""
    item = args.get("Axis")
    if item is None or item is original.get("Axis"):
        return args
    ((tag, axis),) = item.items()
    if type(axis) is not int or not -rank <= axis < 0:
        return args
    return {**args, "Axis": {tag: axis + rank}}


def values(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bare values of ``Args``."""
    return {
        name: next(iter(item.values())) if isinstance(item, dict) and item else item
        for name, item in args.items()
    }


def _value(node: Node, name: str, tag: str) -> Any:
    text = node.attrs[name]
    try:
        if tag == "BOOL":
            return attribute_text.parse_bool(text)
        if tag in LIMITS:
            number = attribute_text.parse_int(text)
            low, high = LIMITS[tag]
            if not low <= number < high:
                raise ValueError(f"{number} is out of range")
            return number if number < 1 << 63 else JsonNumber(str(number))
        if tag == "FLOAT":
            return _float(text)
        if tag == "DIMS":
            sizes = attribute_text.parse_optional_ints(text)
            if None in sizes:
                raise ValueError("None is not a size")
            return list(sizes)
        return plain_json(text)
    except ValueError as error:
        raise UnsupportedError(
            f"{blame(node)}: attribute {name!r} (with value {text!r}) is not a valid {tag}: {error}"
        ) from None


def _float(text: str) -> Any:
    """Return a number as ARK's serializer spells it: a 32-bit float, widened to double."""
    number = attribute_text.parse_float(text)
    if number - number != 0:
        raise ValueError("JSON has no such number")
    if abs(number) > LARGEST_FLOAT:
        raise ValueError(f"{number} is out of range")
    return JsonNumber(repr(float(np.float32(number))))


def _guess(text: str) -> str:
    """Guess the type of an unknown argument from its text."""
    stripped = text.strip()
    if stripped.lower() in ("true", "false"):
        return "BOOL"
    if stripped[:1] in ("(", "["):
        return "DIMS"
    return "INT" if re.fullmatch(r"-?\d+", stripped) else "FLOAT"
