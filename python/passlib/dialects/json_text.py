"""JSON files that are written back letter by letter, except for changed parts.

Objects and arrays (`JsonObject`, a dict, and `JsonArray`, a list) have the byte offsets ``start``,
of the opening bracket, and ``end``, after the closing one. An unchanged container is copied from
the text with its number spelling, spaces and comments. Therefore never modify one: make a new dict
or list, which may hold its members.
"""

from __future__ import annotations

import json
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

    Parameters
    ----------
    text : bytes
    comments : bool
        Accept comments from ``//`` to the end of the line, and a comma after the last item.

    Returns
    -------
    object
        `JsonObject`, `JsonArray`, str, int, `JsonNumber`, bool or None. Integers beyond 64 bits,
        fractions and unusual spellings are `JsonNumber`.

    Raises
    ------
    FormatError
        The text is not JSON, an object has a key twice, or values nest more than 200 levels deep.
    """
    return _core.parse_json(text, JsonNumber, comments, MAX_DEPTH)


def parse_plain(text: str) -> Any:
    """Parse a JSON text that is not written back, such as the value of an attribute.

    Python's own parser has no limits: deep nesting exhausts its stack, long numbers are a
    ValueError.

    Parameters
    ----------
    text : str

    Returns
    -------
    object
        As of `parse`, but with plain dicts and lists, which are printed and not copied.

    Raises
    ------
    FormatError
        As for `parse`.
    """
    return _plain(parse(text.encode("utf-8", "surrogatepass")))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


class Layout:
    """The layout of a text, for printing changed parts.

    Parameters
    ----------
    text : bytes
        The text that has the layout.
    root : object
        The result of `parse`.
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
    """Print a tree whose parts may come from a parsed text.

    Parameters
    ----------
    value : object
        Containers from `parse` are copied from the text of ``layout``. Plain ones are printed, on
        several lines if ``layout`` indents, except arrays without containers.
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
