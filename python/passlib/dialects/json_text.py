"""JSON files that are written back as they were: only what changed is printed anew.

Objects and arrays (`JsonObject`, a dict, and `JsonArray`, a list) remember where they stood in the
text: ``start`` and ``end`` are byte offsets, of the opening brace and behind the closing one. A
container that comes back untouched is copied from there, letter by letter: number spelling, spaces,
comments and all. So do not change one: make a new dict or list, which may hold its members.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from passlib import _core
from passlib._core import JsonArray, JsonObject

__all__ = ["JsonArray", "JsonNumber", "JsonObject", "Layout", "parse", "print_json"]

MAX_DEPTH = 200
"""Models nest a dozen levels; what nests deeper than this is an attack on somebody's stack."""


class JsonNumber(float):
    """A number that Python would spell differently, or that is no 64-bit integer."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> JsonNumber:
        """Make the number that ``text`` spells."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str
    """As it stands in the file."""


def parse(text: bytes, *, comments: bool = False) -> Any:
    """Read a JSON text.

    Parameters
    ----------
    text : bytes
    comments : bool
        Accept comments from ``//`` to the end of the line, and a comma behind the last item.

    Returns
    -------
    object
        `JsonObject`, `JsonArray`, str, int, `JsonNumber`, bool or None. Integers beyond 64 bits,
        fractions and unusual spellings are `JsonNumber`.

    Raises
    ------
    FormatError
        The text is not JSON, an object has a key twice, or values nest deeper than 200 levels.
    """
    return _core.parse_json(text, JsonNumber, comments, MAX_DEPTH)


class Layout:
    """How a text is laid out, for what is printed anew.

    Parameters
    ----------
    text : bytes
        The text that the layout is taken from.
    root : object
        What `parse` made of it.
    """

    def __init__(self, text: bytes, root: Any) -> None:
        self.text = text
        self.indent = 0
        head = text[: text.find(b'"')] if isinstance(root, JsonObject) and root else b""
        if b"\n" in head:
            self.indent = len(head) - head.rfind(b"\n") - 1
        self.colon = ": " if text.find(b'": ') >= 0 or text.find(b'":') < 0 else ":"
        self.comma = ", " if self.indent == 0 and text.find(b", ") >= 0 else ","


def print_json(value: Any, layout: Layout) -> bytes:
    """Write a tree whose parts may come from a parsed text.

    Parameters
    ----------
    value : object
        Containers that `parse` made are copied from the text of ``layout``; plain ones are
        printed, on several lines if ``layout`` indents, but for arrays without containers.
    layout : Layout

    Returns
    -------
    bytes
    """
    return b"".join(_pieces(value, layout, 0))


def _pieces(value: Any, layout: Layout, depth: int) -> Iterator[bytes]:
    if isinstance(value, (JsonObject, JsonArray)):
        yield layout.text[value.start : value.end]
    elif isinstance(value, dict) and value:
        items = [
            (json.dumps(key, ensure_ascii=False) + layout.colon, item)
            for key, item in value.items()
        ]
        yield from _container(b"{", b"}", items, layout, depth, lines=True)
    elif isinstance(value, list) and value:
        lines = any(isinstance(item, (dict, list)) for item in value)
        yield from _container(
            b"[", b"]", [("", item) for item in value], layout, depth, lines=lines
        )
    else:
        yield _scalar(value).encode()


def _container(
    opening: bytes,
    closing: bytes,
    items: list[tuple[str, Any]],
    layout: Layout,
    depth: int,
    *,
    lines: bool,
) -> Iterator[bytes]:
    lines = lines and layout.indent > 0
    inner = b"\n" + b" " * (layout.indent * (depth + 1)) if lines else b""
    yield opening
    for i, (prefix, item) in enumerate(items):
        if i > 0:
            yield layout.comma.encode()
        yield inner
        yield prefix.encode()
        yield from _pieces(item, layout, depth + 1)
    if lines:
        yield b"\n" + b" " * (layout.indent * depth)
    yield closing


def _scalar(value: Any) -> str:
    if isinstance(value, JsonNumber):
        return value.text
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
