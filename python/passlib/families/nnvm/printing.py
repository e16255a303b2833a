"""Printing of JSON in the layout of the program that wrote a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from passlib._core import JsonArray, JsonObject
from passlib.dialects.json_text import JsonNumber

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

_LONG = 10
"""The most numbers that NNVM's writer puts on one line."""


@dataclass(frozen=True)
class Style:
    """The layout of a text."""

    indent: int = 2
    """Spaces for each level; 0 for a text on one line."""
    comma: str = ", "
    colon: str = ": "
    """Separators of items, and of key and value."""
    nnvm: bool = True
    """Whether short objects and arrays are on one line, as in NNVM's own writer."""
    flat_lines: bool = False
    """Whether arrays of plain values have a line for each value."""


NNVM = Style()
"""The layout of NNVM and MXNet; a space follows each comma, also at the end of a line."""


def style_of(text: bytes, root: dict[str, Any]) -> Style:
    """Determine the layout of a graph."""
    head = text[root.start : text.find(b'"', root.start)] if isinstance(root, JsonObject) else b""
    colon = ": " if b'": ' in text or b'":' not in text else ":"
    if b"\n" not in head:
        return Style(0, ", " if b", " in text else ",", colon, nnvm=False)
    indent = len(head) - head.rfind(b"\n") - 1
    if b", \n" in text:
        return Style(indent, ", ", colon)
    arguments = root.get("arg_nodes")
    lines = isinstance(arguments, JsonArray) and b"\n" in text[arguments.start : arguments.end]
    return Style(indent, ",", colon, nnvm=False, flat_lines=lines)


def print_value(value: Any, text: bytes, style: Style) -> bytes:
    """Print a value; parts that were parsed from ``text`` are copied from it."""
    pieces: list[bytes] = []
    _print(value, text, style, 0, pieces, inside_lines=True)
    return b"".join(pieces)


def _print(
    value: Any,
    text: bytes,
    style: Style,
    depth: int,
    pieces: list[bytes],
    *,
    inside_lines: bool,
    shapes: bool = False,
) -> None:
    if isinstance(value, (JsonObject, JsonArray)):
        pieces.append(text[value.start : value.end])
        return
    if not isinstance(value, (dict, list)) or not value:
        pieces.append(_plain(value))
        return
    lines = _takes_lines(value, style) or (shapes and style.nnvm)
    inner = b"\n" + b" " * (style.indent * (depth + 1)) if lines else b""
    comma = (style.comma if style.nnvm or not lines else ",").encode() + inner
    pieces.append((b"{" if isinstance(value, dict) else b"[") + inner)
    if isinstance(value, dict):
        for i, (key, item) in enumerate(value.items()):
            name = _encode(key) + style.colon
            pieces.append((comma if i > 0 else b"") + name.encode())
            _print(item, text, style, depth + 1, pieces, inside_lines=lines)
    elif any(isinstance(item, (dict, list)) for item in value):
        for i, item in enumerate(value):
            if i > 0:
                pieces.append(comma)
            # NNVM puts shapes on lines of their own, even those that look like entries.
            shapes = value[0] == "list_shape"
            _print(item, text, style, depth + 1, pieces, inside_lines=lines, shapes=shapes)
    else:
        pieces.append(comma.join(map(_plain, value)))
    if lines and (inside_lines or not style.nnvm):
        pieces.append(b"\n" + b" " * (style.indent * depth))
    pieces.append(b"}" if isinstance(value, dict) else b"]")


def _takes_lines(value: dict[str, Any] | list[Any], style: Style) -> bool:
    if style.indent == 0:
        return False
    if not style.nnvm:
        nested = isinstance(value, dict) or any(isinstance(item, (dict, list)) for item in value)
        return nested or style.flat_lines
    if isinstance(value, dict):
        # Nodes and graphs always have several members, attributes may have one.
        return len(value) > 1
    if len(value) == 2 and isinstance(value[0], str) and not isinstance(value[1], str):
        return False  # a typed attribute
    if any(isinstance(item, (dict, str)) for item in value):
        return True
    if any(isinstance(item, list) for item in value):
        entries = all(isinstance(item, list) and len(item) in (2, 3) for item in value)
        return len(value) > _LONG or not entries
    return len(value) > _LONG


def _plain(value: Any) -> bytes:
    if type(value) is int:
        return b"%d" % value
    if isinstance(value, JsonNumber):
        return value.text.encode()
    return _encode(value).encode()
