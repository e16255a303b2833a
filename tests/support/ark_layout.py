"""The layout of ARK's serializer: a printer for the tests, independent of the writer."""

from __future__ import annotations

import json
from typing import Any

DEPTHS = {"Pads": 7, "Ops": 6, "Op": 5}
"""Levels of nested objects on lines of their own, by a key that marks the variant."""


class _Number(float):
    text: str

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


def print_file(text: str, depth: int) -> str:
    """Print a file again with lines down to a depth; depth 0 is one line."""
    return _print(json.loads(text, parse_float=_Number), depth, 0, "")


def _print(value: Any, depth: int, level: int, indent: str) -> str:
    if isinstance(value, _Number):
        return value.text
    if not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    objects = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    lines = level < depth and bool(value) and (isinstance(value, dict) or objects)
    if isinstance(value, dict):
        colon, ends = (": " if lines else ":"), "{}"
        parts = [
            json.dumps(key) + colon + _print(item, depth, level + 1, inner)
            for key, item in value.items()
        ]
    else:
        ends = "[]"
        parts = [_print(item, depth, level + 1, inner) for item in value]
    if not lines:
        return ends[0] + ",".join(parts) + ends[1]
    return f"{ends[0]}\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}{ends[1]}"
