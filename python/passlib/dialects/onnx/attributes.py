"""Attributes of ONNX nodes as text for passes to read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from passlib.dialects.onnx.tensors import ELEMENT_TYPES, to_array
from passlib.errors import FormatError
from passlib.files.optional import require

__all__ = [
    "FLOAT",
    "FLOATS",
    "GRAPH",
    "GRAPHS",
    "INT",
    "INTS",
    "SPARSE_TENSOR",
    "SPARSE_TENSORS",
    "STRING",
    "STRINGS",
    "TENSOR",
    "TENSORS",
    "TYPE_PROTO",
    "TYPE_PROTOS",
    "is_plain",
    "kind_of",
    "reference_of",
    "to_text",
]

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS = range(1, 11)
SPARSE_TENSOR, SPARSE_TENSORS, TYPE_PROTO, TYPE_PROTOS = 11, 12, 13, 14

_SHOWN = 256
"""Tensors up to this many elements are spelled out in full."""

_FIELDS = {
    FLOAT: "f",
    INT: "i",
    STRING: "s",
    TENSOR: "t",
    GRAPH: "g",
    FLOATS: "floats",
    INTS: "ints",
    STRINGS: "strings",
    TENSORS: "tensors",
    GRAPHS: "graphs",
    SPARSE_TENSOR: "sparse_tensor",
    SPARSE_TENSORS: "sparse_tensors",
    TYPE_PROTO: "tp",
    TYPE_PROTOS: "type_protos",
}


_PLAIN = frozenset((FLOAT, INT, STRING, FLOATS, INTS, STRINGS))


def kind_of(attribute: Any) -> int:
    """Give the type of an attribute; models of the first versions do not write it down.

    Returns
    -------
    int
        As in ``AttributeProto.AttributeType``; 0 if nobody knows.
    """
    if attribute.type:
        return int(attribute.type)
    present = {field.name for field, _ in attribute.ListFields()}
    return next((kind for kind, field in _FIELDS.items() if field in present), 0)


def is_plain(attribute: Any) -> bool:
    """Whether the text of an attribute depends on nothing but the attribute itself."""
    return attribute.type in _PLAIN


def to_text(attribute: Any, where: str, graphs: int) -> str:
    """Write the value of an attribute as text.

    Parameters
    ----------
    attribute : onnx.AttributeProto
    where : str
        Node and attribute, ``<id>/<name>``, by which a value that is not spelled out is found.
    graphs : int
        Number of nested graphs that came before in this node.

    Returns
    -------
    str
        ``3``, ``[1, 2]``, ``0.1``; strings as they are, lists of strings as JSON; tensors and
        types as JSON objects; ``subgraph[0]`` for a graph.
    """
    kind = kind_of(attribute)
    if attribute.ref_attr_name:
        return f"@{_decoded(attribute.ref_attr_name)}"
    if kind == INT:
        return str(attribute.i)
    if kind == INTS:
        return str(list(attribute.ints))
    if kind == STRING:
        return _decoded(attribute.s)
    if kind == FLOAT:
        return _float_text(attribute.f)
    if kind == FLOATS:
        return f"[{', '.join(map(_float_text, attribute.floats))}]"
    if kind == STRINGS:
        return json.dumps([_decoded(text) for text in attribute.strings], ensure_ascii=False)
    if kind == GRAPH:
        return f"subgraph[{graphs}]"
    if kind == GRAPHS:
        return f"subgraph[{graphs}:{graphs + len(attribute.graphs)}]"
    if kind == TENSOR:
        return json.dumps(_describe_tensor(attribute.t, where))
    if kind == TENSORS:
        return json.dumps(
            [_describe_tensor(t, f"{where}[{i}]") for i, t in enumerate(attribute.tensors)]
        )
    if kind == TYPE_PROTO:
        return json.dumps(_describe_message(attribute.tp))
    if kind == TYPE_PROTOS:
        return json.dumps([_describe_message(message) for message in attribute.type_protos])
    if kind == SPARSE_TENSOR:
        return json.dumps(_describe_sparse(attribute.sparse_tensor, where))
    if kind == SPARSE_TENSORS:
        return json.dumps(
            [
                _describe_sparse(tensor, f"{where}[{i}]")
                for i, tensor in enumerate(attribute.sparse_tensors)
            ]
        )
    return json.dumps({"kind": kind, "same_as": where})


def _decoded(text: Any) -> str:
    """Decode a string; what is no UTF-8, or would end a string of C, becomes an escape."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return str(text).replace("\0", "\\x00")


def _float_text(value: float) -> str:
    return str(np.float32(value))


def _describe_tensor(tensor: Any, where: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "dtype": ELEMENT_TYPES.get(tensor.data_type, f"type {tensor.data_type}"),
        "shape": list(tensor.dims),
    }
    try:
        array = to_array(tensor, where) if tensor.data_location == 0 else None
    except FormatError:
        array = None  # of no use to a pass; what checks the model reports it
    if array is not None and array.size <= _SHOWN:
        described["data"] = _wide(array).reshape(-1).tolist()
    else:
        described["same_as"] = where
    return described


def _describe_sparse(tensor: Any, where: str) -> dict[str, Any]:
    return {
        "shape": list(tensor.dims),
        "values": _describe_tensor(tensor.values, where),
        "indices": _describe_tensor(tensor.indices, where),
    }


def _describe_message(message: Any) -> Any:
    return require("google.protobuf.json_format", extra="onnx").MessageToDict(message)


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def reference_of(text: str) -> str | None:
    """Give the place of the attribute whose value a text stands for; None if it stands alone."""
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
