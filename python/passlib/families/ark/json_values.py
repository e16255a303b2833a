"""JSON values as text: compact printing, reading outside of files, names for messages."""

from __future__ import annotations

import json
from typing import Any

from passlib.dialects.json_text import JsonNumber, parse_plain
from passlib.errors import FormatError

TYPE_NAMES: dict[type, str] = {
    int: "an integer",
    list: "an array",
    str: "a string",
    bool: "true or false",
    dict: "an object",
}
"""The types of JSON values as messages spell them."""


def compact_json(value: Any) -> str:
    """Print JSON on one line without spaces; numbers keep their spelling."""
    if isinstance(value, dict):
        items = (f"{json.dumps(k, ensure_ascii=False)}:{compact_json(v)}" for k, v in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple, range)):
        return "[" + ",".join(map(compact_json, value)) + "]"
    if isinstance(value, JsonNumber):
        return value.text
    return json.dumps(value, ensure_ascii=False)


def plain_json(text: str) -> Any:
    """Read JSON that does not come from a file, so that printing never copies it from one.

    Raises
    ------
    ValueError
        It is not JSON.
    """
    try:
        return parse_plain(text)
    except FormatError as error:
        raise ValueError(str(error)) from None


def kind(value: Any) -> str:
    """Return a JSON value as messages name it: numbers and constants as such, others by type."""
    if value is None or isinstance(value, (bool, int, float)):
        return compact_json(value)
    return next(TYPE_NAMES[known] for known in (dict, list, str) if isinstance(value, known))
