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
        _PARSERS[kind](made, text)
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


def _set_int(made: Any, text: str) -> None:
    made.i = _integer(text)


def _set_float(made: Any, text: str) -> None:
    made.f = float(text)


def _set_string(made: Any, text: str) -> None:
    made.s = text.encode()


def _set_ints(made: Any, text: str) -> None:
    made.ints.extend(map(_integer, _items(text)))


def _set_floats(made: Any, text: str) -> None:
    made.floats.extend(map(float, _items(text)))


def _set_strings(made: Any, text: str) -> None:
    values = json.loads(text)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("this is not a JSON list of strings")
    made.strings.extend(value.encode() for value in values)


def _set_tensor(made: Any, text: str) -> None:
    _tensor(made.t, json.loads(text))


def _set_tensors(made: Any, text: str) -> None:
    for described in json.loads(text):
        _tensor(made.tensors.add(), described)


def _sparse(target: Any, described: Any) -> None:
    target.dims.extend(described["shape"])
    _tensor(target.values, described["values"])
    _tensor(target.indices, described["indices"])


def _set_sparse(made: Any, text: str) -> None:
    _sparse(made.sparse_tensor, json.loads(text))


def _set_sparse_list(made: Any, text: str) -> None:
    for described in json.loads(text):
        _sparse(made.sparse_tensors.add(), described)


def _read_message(target: Any, described: Any) -> None:
    json_format: Any = require("google.protobuf.json_format", extra="onnx")
    try:
        json_format.ParseDict(described, target)
    except json_format.ParseError as error:
        raise ValueError(str(error)) from None


def _set_type(made: Any, text: str) -> None:
    _read_message(made.tp, json.loads(text))


def _set_types(made: Any, text: str) -> None:
    for described in json.loads(text):
        _read_message(made.type_protos.add(), described)


def _refuse(made: Any, text: str) -> None:
    raise ValueError("passes can keep or copy nested graphs, not make them from text")


_PARSERS: dict[int, Callable[[Any, str], None]] = {
    FLOAT: _set_float,
    INT: _set_int,
    STRING: _set_string,
    TENSOR: _set_tensor,
    GRAPH: _refuse,
    FLOATS: _set_floats,
    INTS: _set_ints,
    STRINGS: _set_strings,
    TENSORS: _set_tensors,
    GRAPHS: _refuse,
    SPARSE_TENSOR: _set_sparse,
    SPARSE_TENSORS: _set_sparse_list,
    TYPE_PROTO: _set_type,
    TYPE_PROTOS: _set_types,
}


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
