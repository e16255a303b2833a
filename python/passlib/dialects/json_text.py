"""JSON files that are written back letter by letter, except for changed parts.

Objects and arrays (`JsonObject`, a dict, and `JsonArray`, a list) have the byte offsets ``start``,
of the opening bracket, and ``end``, after the closing one. An unchanged container is copied from
the text with its number spelling, spaces and comments. Therefore never modify one: make a new dict
or list, which may hold its members.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from typing import Any

import passlib._core as _core
from passlib._core import JsonArray, JsonObject

MAX_DEPTH = 200
"""Models nest a dozen levels; deeper nesting could only exhaust a stack."""


class JsonNumber(float):
    """A number that Python would spell differently, or that is no 64-bit integer."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> JsonNumber:
        """Parse ``text``."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str
    """The spelling in the file."""


def parse(text: bytes, *, comments: bool = False) -> Any:
    """Parse a JSON text.

    ``comments``: accept comments from ``//`` to the end of the line, and a comma after the last
    item. Result: `JsonObject`, `JsonArray`, str, int, `JsonNumber`, bool or None. Integers beyond
    64 bits, fractions and unusual spellings are `JsonNumber`. Raises `FormatError` if the text is
    not JSON, an object has a key twice, or values nest more than 200 levels deep.
    """
    return _core.parse_json(text, JsonNumber, comments, MAX_DEPTH)


def parse_plain(text: str) -> Any:
    """Parse a JSON text that is not written back, such as the value of an attribute.

    Python's own parser has no limits: deep nesting exhausts its stack, long numbers are a
    ValueError. Result: as of `parse`, but with plain dicts and lists, which are printed and not
    copied. Errors are those of `parse`.
    """
    return plain(parse(text.encode("utf-8", "surrogatepass")))


def plain(value: Any) -> Any:
    """Copy containers to plain ones, without a place in a text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def keep(items: list[Any], original: Any) -> Any:
    """Return the list of a file if it holds the very same items, since it keeps its text."""
    same = isinstance(original, list) and len(original) == len(items)
    return original if same and all(map(operator.is_, items, original)) else items


def compact_json(value: Any, comma: str = ",", colon: str = ":") -> str:
    """Print JSON on one line; numbers keep their spelling."""
    if isinstance(value, dict):
        items = value.items()
        pairs = (_scalar(k) + colon + compact_json(v, comma, colon) for k, v in items)
        return "{" + comma.join(pairs) + "}"
    if isinstance(value, (list, tuple, range)):
        return "[" + comma.join(compact_json(item, comma, colon) for item in value) + "]"
    return _scalar(value)


class Layout:
    """The layout of a text that `parse` read as ``root``, for printing changed parts."""

    def __init__(self, text: bytes, root: Any) -> None:
        self.text = text
        self.indent = 0
        head = text[: text.find(b'"')] if isinstance(root, JsonObject) and root else b""
        if b"\n" in head:
            self.indent = len(head) - head.rfind(b"\n") - 1
        self.colon = ": " if text.find(b'": ') >= 0 or text.find(b'":') < 0 else ":"
        self.comma = ", " if self.indent == 0 and text.find(b", ") >= 0 else ","

    def takes_lines(self, value: Any, depth: int) -> bool:
        """Whether a container that is not empty takes several lines."""
        nested = isinstance(value, dict) or any(isinstance(item, (dict, list)) for item in value)
        return self.indent > 0 and nested

    def separators(self, *, lines: bool) -> tuple[str, str]:
        """Return the separators of items, and of key and value."""
        return self.comma, self.colon


def print_json(value: Any, layout: Layout) -> bytes:
    """Print a tree: containers from `parse` are copied from the text of ``layout``."""
    return b"".join(_pieces(value, layout, 0))


def _pieces(value: Any, layout: Layout, depth: int) -> Iterator[bytes]:
    if isinstance(value, (JsonObject, JsonArray)):
        yield layout.text[value.start : value.end]
        return
    if not isinstance(value, (dict, list)) or not value:
        yield _scalar(value).encode()
        return
    lines = layout.takes_lines(value, depth)
    inner = b"\n" + b" " * (layout.indent * (depth + 1)) if lines else b""
    comma, colon = layout.separators(lines=lines)
    is_object = isinstance(value, dict)
    yield b"{" if is_object else b"["
    for i, item in enumerate(value):
        yield (comma.encode() if i > 0 else b"") + inner
        if is_object:
            yield (_scalar(item) + colon).encode()
        yield from _pieces(value[item] if is_object else item, layout, depth + 1)
    if lines:
        yield b"\n" + b" " * (layout.indent * depth)
    yield b"}" if is_object else b"]"


def _scalar(value: Any) -> str:
    if isinstance(value, JsonNumber):
        return value.text
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
