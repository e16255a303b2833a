"""Attributes of ONNX nodes as text for passes to read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from passlib.dialects.onnx import attributes
from passlib.dialects.onnx.tensors import ELEMENT_TYPES, to_array
from passlib.errors import FormatError
from passlib.files.optional import require

__all__ = ["is_plain", "to_text"]

_SHOWN = 256
"""Tensors of up to this many elements are spelled out in full."""

_PLAIN = frozenset(
    (
        attributes.FLOAT,
        attributes.INT,
        attributes.STRING,
        attributes.FLOATS,
        attributes.INTS,
        attributes.STRINGS,
    )
)


def is_plain(attribute: Any) -> bool:
    """Whether the text of an attribute depends on nothing but the attribute itself."""
    return attribute.type in _PLAIN


def to_text(attribute: Any, where: str, graphs: int) -> str:
    """Write the value of an attribute as text.

    Parameters
    ----------
    attribute : onnx.AttributeProto
    where : str
        Node and attribute, ``<id>/<name>``: the reference for a value that is not spelled out.
    graphs : int
        Number of nested graphs in the preceding attributes of the node.

    Returns
    -------
    str
        ``3``, ``[1, 2]``, ``0.1``; strings as they are, lists of strings as JSON; tensors and
        types as JSON objects; ``subgraph[0]`` for a graph.
    """
    if attribute.ref_attr_name:
        return f"@{_decoded(attribute.ref_attr_name)}"
    kind = attributes.kind_of(attribute)
    if kind in _WRITERS:
        return _WRITERS[kind](attribute)
    if kind == attributes.GRAPH:
        return f"subgraph[{graphs}]"
    if kind == attributes.GRAPHS:
        return f"subgraph[{graphs}:{graphs + len(attribute.graphs)}]"
    return json.dumps(_described(attribute, kind, where))


def _decoded(text: Any) -> str:
    """Decode a string; bytes that are not UTF-8, and zeros, which end strings in C, are escaped."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return str(text).replace("\0", "\\x00")


def _float_text(value: float) -> str:
    return str(np.float32(value))


_WRITERS: dict[int, Callable[[Any], str]] = {
    attributes.INT: lambda value: str(value.i),
    attributes.INTS: lambda value: str(list(value.ints)),
    attributes.STRING: lambda value: _decoded(value.s),
    attributes.FLOAT: lambda value: _float_text(value.f),
    attributes.FLOATS: lambda value: f"[{', '.join(map(_float_text, value.floats))}]",
    attributes.STRINGS: lambda value: json.dumps(
        [_decoded(text) for text in value.strings], ensure_ascii=False
    ),
}


def _described(attribute: Any, kind: int, where: str) -> Any:
    """Return the JSON form of an attribute that is neither plain nor a graph."""
    if kind == attributes.TENSOR:
        return _describe_tensor(attribute.t, where)
    if kind == attributes.TENSORS:
        return [_describe_tensor(t, f"{where}[{i}]") for i, t in enumerate(attribute.tensors)]
    if kind == attributes.TYPE_PROTO:
        return _describe_message(attribute.tp)
    if kind == attributes.TYPE_PROTOS:
        return [_describe_message(message) for message in attribute.type_protos]
    if kind == attributes.SPARSE_TENSOR:
        return _describe_sparse(attribute.sparse_tensor, where)
    if kind == attributes.SPARSE_TENSORS:
        return [
            _describe_sparse(tensor, f"{where}[{i}]")
            for i, tensor in enumerate(attribute.sparse_tensors)
        ]
    return {"kind": kind, "same_as": where}


def _describe_tensor(tensor: Any, where: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "dtype": ELEMENT_TYPES.get(tensor.data_type, f"type {tensor.data_type}"),
        "shape": list(tensor.dims),
    }
    try:
        array = to_array(tensor, where) if tensor.data_location == 0 else None
    except FormatError:
        array = None  # of no use to a pass; validation reports it
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
