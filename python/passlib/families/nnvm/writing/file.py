"""From a model to the text of a file: unchanged parts keep every letter."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.dialects import json_text
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.families.nnvm.printing import NNVM, print_value, style_of
from passlib.families.nnvm.reading.file import (
    ATTRIBUTES,
    STRUCTURE,
    Document,
    GraphTemplate,
    own_attributes,
)
from passlib.families.nnvm.reading.structure import GRAPH_ATTRIBUTE_KEYS
from passlib.families.nnvm.reading.weights import ARRAY_MAGIC, BFLOAT_KIND, BOOL, KINDS, LIST_MAGIC
from passlib.families.nnvm.writing.graph import EMPTY, graph_object


def render(model: ModelData) -> bytes:
    """Write a model.

    Raises `GraphError` if a list that a pass wrote does not fit the nodes; `UnsupportedError` if
    the value of a new output in a list with one value for each output is unknown.
    """
    document = model.template if isinstance(model.template, Document) else None
    if document is not None and document.is_of(model):
        return document.text
    if document is None:
        template, text, style = EMPTY, b"", NNVM
    else:
        template, text = document.graph, document.text
        style = style_of(text, template.root)
    members = _changed_members(model.attributes, template, text)
    value = graph_object(model.graph, template, members, {**model.args, **model.aux})
    if value is template.root and document is not None:
        return text
    printed = print_value(value, text, style)
    if document is None:
        return printed
    start, end = document.graph.root.start, document.graph.root.end  # type: ignore[attr-defined]
    return text[:start] + printed + text[end:]


def _changed_members(
    attributes: Mapping[str, str], template: GraphTemplate, text: bytes
) -> dict[str, Any]:
    """Return the top-level members besides the graph: as in the file, or as a pass left them."""
    before = own_attributes(template, text)
    members: dict[str, Any] = {}
    taken = set()
    for key, value in template.root.items():
        if key in STRUCTURE:
            continue
        name = ATTRIBUTES if key in GRAPH_ATTRIBUTE_KEYS else key
        taken.add(name)
        if name not in attributes:
            continue
        if attributes[name] == before[name]:
            members[key] = value
            continue
        now = _parsed(name, attributes[name])
        members[key] = value if now == value else _unchanged_parts(json_text.plain(now), value)
    for name, json in attributes.items():
        if name not in taken and name not in STRUCTURE:
            members[name] = json_text.plain(_parsed(name, json))
    return members


def _parsed(name: str, json: str) -> Any:
    try:
        return json_text.parse(json.encode())
    except FormatError as error:
        raise GraphError(f"graph attribute {name!r} is not JSON: {error}") from error


def _unchanged_parts(now: Any, before: Any) -> Any:
    """Take unchanged members from ``before``, in their order there."""
    if not (isinstance(now, dict) and isinstance(before, dict)):
        return now
    kept = {key: value if now[key] == value else now[key] for key, value in before.items()
            if key in now}  # fmt: skip
    return kept | {key: value for key, value in now.items() if key not in before}


_CPU: Final = 1


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays; raise `UnsupportedError` if TVM lacks a type, as that of sparse ones."""
    headers = {name: _header(name, array) for name, array in arrays.items()}
    with path.open("wb") as file:
        file.write(struct.pack("<QQQ", LIST_MAGIC, 0, len(headers)))
        for name in headers:
            encoded = name.encode()
            file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.write(struct.pack("<Q", len(headers)))
        for name, header in headers.items():
            file.write(header)
            array = arrays[name]
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def _header(name: str, array: Any) -> bytes:
    if not isinstance(array, np.ndarray):
        raise UnsupportedError(f"array {name!r} is sparse, but TVM has dense parameters only")
    dtype = array.dtype
    if dtype == np.bool_:
        kind = BOOL
    elif dtype.name == "bfloat16":
        kind = (BFLOAT_KIND, 16)
    elif dtype.kind in KINDS and dtype.itemsize <= 8:
        kind = (KINDS[dtype.kind], dtype.itemsize * 8)
    else:
        raise UnsupportedError(f"array {name!r} is of type {dtype}, which TVM lacks")
    sizes = struct.pack(f"<{array.ndim}qq", *array.shape, array.nbytes)
    return struct.pack("<QQiiiBBH", ARRAY_MAGIC, 0, _CPU, 0, array.ndim, *kind, 1) + sizes
