"""Attributes of nodes that passes made or changed, as serialized messages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import (
    FLOAT,
    FLOATS,
    GRAPH,
    GRAPHS,
    INT,
    INTS,
    SPARSE_TENSOR,
    SPARSE_TENSORS,
    STRING,
    STRINGS,
    TENSOR,
    TENSORS,
    TYPE_PROTO,
    TYPE_PROTOS,
)
from passlib.dialects.onnx.tensors import code_of, to_bytes
from passlib.errors import UnsupportedError
from passlib.files.optional import require


def parse(name: str, text: str, kind: int, node: str) -> Any:
    """Make an attribute from its text.

    ``kind``: the type; 0 to guess it from the text. ``node``: for messages. Raises
    `UnsupportedError` if the text is not a value of this type.
    """
    onnx: Any = require("onnx", extra="onnx")
    made = onnx.AttributeProto(name=name)
    kind = kind or _guess(text)
    made.type = kind
    try:
        _fill(made, kind, text)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        shown = text if len(text) <= 60 else text[:60] + "..."
        raise UnsupportedError(
            f"{node}: attribute {name!r}: {shown!r} is not a value of type "
            f"{onnx.AttributeProto.AttributeType.Name(kind)} ({error})"
        ) from None
    return made


_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


def _guess(text: str) -> int:
    """Guess the type of an attribute that has no schema."""
    if _INTEGER.match(text):
        return INT
    if _is_float(text):
        return FLOAT
    if text[:1] in "[(" and text[-1:] in "])":
        items = _items(text)
        if all(_INTEGER.match(item) for item in items):
            return INTS
        if all(map(_is_float, items)):
            return FLOATS
        try:
            if all(isinstance(item, str) for item in json.loads(text)):
                return STRINGS
        except (ValueError, RecursionError):
            return STRING
    return STRING


def _is_float(text: str) -> bool:
    if "_" in text or not text.isascii():
        return False  # Python accepts more forms of numbers than others do
    try:
        float(text)
    except ValueError:
        return False
    return True


def _items(text: str) -> list[str]:
    """Split ``[1, 2]``, ``(1, 2)`` or ``1, 2``."""
    inner = text.strip()
    if inner[:1] in ("[", "("):
        if inner[-1:] != {"[": "]", "(": ")"}[inner[0]]:
            raise ValueError("the bracket is not closed")
        inner = inner[1:-1]
    return [item.strip() for item in inner.split(",") if item.strip()]


def _integer(text: str) -> int:
    if text in ("True", "False", "true", "false"):
        return int(text in ("True", "true"))
    return int(text)


def _tensor(target: Any, described: Any) -> None:
    """Fill a TensorProto from its JSON form."""
    dtype = dtypes.as_dtype(described["dtype"])
    wide = np.dtype(np.float32) if dtype.name == "bfloat16" else dtype
    array = np.array(described["data"], wide).astype(dtype).reshape(described["shape"])
    target.data_type = code_of(dtype, "tensor")
    target.dims.extend(array.shape)
    target.raw_data = to_bytes(array)


def _sparse(target: Any, described: Any) -> None:
    target.dims.extend(described["shape"])
    _tensor(target.values, described["values"])
    _tensor(target.indices, described["indices"])


def _read_message(target: Any, described: Any) -> None:
    json_format: Any = require("google.protobuf.json_format", extra="onnx")
    try:
        json_format.ParseDict(described, target)
    except json_format.ParseError as error:
        raise ValueError(str(error)) from None


_MESSAGES: dict[int, tuple[str, Callable[[Any, Any], None]]] = {
    TENSOR: ("t", _tensor),
    TENSORS: ("tensors", _tensor),
    SPARSE_TENSOR: ("sparse_tensor", _sparse),
    SPARSE_TENSORS: ("sparse_tensors", _sparse),
    TYPE_PROTO: ("tp", _read_message),
    TYPE_PROTOS: ("type_protos", _read_message),
}
"""Fields of the types whose texts are JSON, and what fills a message from it."""


def _fill(made: Any, kind: int, text: str) -> None:
    if kind == INT:
        made.i = _integer(text)
    elif kind == FLOAT:
        made.f = float(text)
    elif kind == STRING:
        made.s = text.encode()
    elif kind == INTS:
        made.ints.extend(map(_integer, _items(text)))
    elif kind == FLOATS:
        made.floats.extend(map(float, _items(text)))
    elif kind == STRINGS:
        values = json.loads(text)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError("this is not a JSON list of strings")
        made.strings.extend(value.encode() for value in values)
    elif kind in (GRAPH, GRAPHS):
        raise ValueError("passes can keep or copy nested graphs, not make them from text")
    else:
        name, fill = _MESSAGES[kind]
        described = json.loads(text)
        if kind in (TENSOR, SPARSE_TENSOR, TYPE_PROTO):
            fill(getattr(made, name), described)
        else:
            for each in described:
                fill(getattr(made, name).add(), each)


class AttributeMaker:
    """Makes attributes from their text.

    ``imports``: versions of the operator sets, for the types of new attributes.
    """

    def __init__(self, imports: Mapping[str, int]) -> None:
        self._imports = {schema.plain(domain): number for domain, number in imports.items()}

    def __call__(
        self, name: str, op: str, domain: str, key: str, text: str, kind: int
    ) -> bytes | str:
        """Make an attribute.

        Result: an onnx.AttributeProto, or the place of the one that the text refers to. ``name``,
        ``op``, ``domain``: of the node. ``kind``: the type that it has in the file; 0 for a new
        attribute. Raises `UnsupportedError` if the text is not a value of the attribute's type.
        """
        place = _reference_of(text)
        if place is not None:
            return place
        if not kind:
            domain = schema.plain(domain)
            version = self._imports.get(domain, 0) or schema.newest_version(domain, 1 << 30)
            kind = schema.attribute_types(op, domain, version).get(key, 0)
        made = parse(key, text, kind, f"node {name!r} ({op})")
        message: bytes = made.SerializeToString()
        return message


def _reference_of(text: str) -> str | None:
    """Return the place of the attribute that a text refers to; None if it states the value."""
    if '"same_as"' not in text:
        return None
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        return None
    while isinstance(described, list) and described:
        described = described[0]
    if isinstance(described, dict) and "values" in described:
        described = described["values"]
    place = described.get("same_as") if isinstance(described, dict) else None
    return place.partition("[")[0] if isinstance(place, str) else None
