"""Printing of JSON in the layout of ARK's serializer; unchanged parts are copied from the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from passlib._core import JsonArray, JsonObject
from passlib.families.ark.document import Document
from passlib.families.ark.json_values import compact_json


def print_document(document: Document, root: Any) -> bytes:
    """Print a file.

    Parameters
    ----------
    document : Document
        Determines the layout, and has the text of unchanged parts.
    root : object
        Printed in place of ``document.root``.
    """
    old = document.root
    assert isinstance(old, JsonObject)
    text = document.text
    pieces = b"".join(_pieces(root, text, _Layout(document), 0))
    return text[: old.start] + pieces + text[old.end :]


class _Layout:
    """Which containers take several lines, and how far they are indented.

    The serializer breaks lines down to some depth; deeper values and arrays of numbers are on one
    line without spaces.
    """

    def __init__(self, document: Document) -> None:
        text, root = document.text, document.root
        assert isinstance(root, JsonObject)
        head = text[root.start + 1 : root.end].split(b'"', 1)[0]
        self.indent = len(head) - head.rfind(b"\n") - 1 if b"\n" in head else 0
        self.depth = -1
        sample = [root, *document.units[:1]]
        pending: list[tuple[Any, int]] = [(value, 2 * i) for i, value in enumerate(sample)]
        while pending and self.indent:
            value, depth = pending.pop()
            if isinstance(value, JsonObject):
                if b"\n" in text[value.start : value.end]:
                    self.depth = max(self.depth, depth)
                pending += [(item, depth + 1) for item in value.values() if depth != 0]
            elif isinstance(value, JsonArray):
                # if no op has arguments, only the lists of tensors reach the full depth
                if b"\n" in text[value.start : value.end] and any(map(_is_object, value)):
                    self.depth = max(self.depth, depth)
                pending += [(item, depth + 1) for item in value]


def _pieces(value: Any, text: bytes, layout: _Layout, depth: int) -> Iterator[bytes]:
    if isinstance(value, (JsonObject, JsonArray)):
        yield text[value.start : value.end]
        return
    is_object = isinstance(value, dict)
    lines = depth <= layout.depth and (
        (is_object and value) or (isinstance(value, list) and any(map(_is_object, value)))
    )
    if not is_object and not isinstance(value, list):
        yield compact_json(value).encode()
        return
    items = value.items() if is_object else [(None, item) for item in value]
    yield b"{" if is_object else b"["
    for number, (key, item) in enumerate(items):
        if number:
            yield b","
        if lines:
            yield b"\n" + b" " * (layout.indent * (depth + 1))
        if is_object:
            yield json.dumps(key, ensure_ascii=False).encode() + (b": " if lines else b":")
        yield from _pieces(item, text, layout, depth + 1)
    if lines:
        yield b"\n" + b" " * (layout.indent * depth)
    yield b"}" if is_object else b"]"


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
