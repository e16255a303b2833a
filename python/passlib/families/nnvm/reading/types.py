"""Element types and shapes that a file lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.json_text import parse_plain
from passlib.dialects.protocol import ModelData
from passlib.errors import PasslibError
from passlib.families.nnvm.reading.file import ATTRIBUTES, Document
from passlib.families.nnvm.reading.template import PLACE
from passlib.graph.attribute_text import parse_position
from passlib.graph.node import VARIABLE
from passlib.lowering.types import Shape, TypeSpec

_CODES = (
    *("float32", "float64", "float16", "uint8", "int32", "int8", "int64"),
    *("int16", "uint16", "uint32", "uint64"),
)
"""NNVM's element types by code."""


def input_types(model: ModelData) -> dict[str, TypeSpec]:
    """Return the types that the graph attributes of a file list for its variables."""
    if ATTRIBUTES not in model.attributes:
        return {}
    attributes = parse_plain(model.attributes[ATTRIBUTES])
    listed = listed_types(attributes if isinstance(attributes, dict) else {})
    nodes = model.graph.nodes()
    first = [0]
    for outputs in _outputs(model, nodes):
        first.append(first[-1] + outputs)
    types = {}
    for node in nodes:
        place = parse_position(node.attrs.get(PLACE, ""))
        if node.op != VARIABLE or place is None or place >= len(first) - 1:
            continue
        if first[place] < len(listed):
            types[node.name] = listed[first[place]]
    return types


def _outputs(model: ModelData, nodes: Sequence[_core.NodeTuple]) -> Sequence[int]:
    """Return the number of outputs of each node of the file; none if that is not known."""
    if isinstance(model.template, Document):
        return model.template.graph.outputs
    if any(node.attrs.get(PLACE) != str(place) for place, node in enumerate(nodes)):
        return ()
    return [node.num_outputs for node in nodes]


def listed_types(attributes: Mapping[str, Any]) -> list[TypeSpec]:
    """Read the types of all entries from the attributes of a graph."""
    shapes = _values(attributes, "shape")
    names = _values(attributes, "dltype")
    codes = _values(attributes, "dtype")
    count = max(map(len, (shapes, names, codes)))
    listed = []
    for i in range(count):
        code = codes[i] if i < len(codes) else -1
        dtype = named_dtype(names[i]) if i < len(names) else _of_code(code)
        listed.append(TypeSpec(dtype, _shape(shapes[i]) if i < len(shapes) else None))
    return listed


def _values(attributes: Mapping[str, Any], name: str) -> Sequence[Any]:
    pair = attributes.get(name)
    if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list):
        return pair[1]
    return ()


def named_dtype(name: Any) -> np.dtype | None:
    """Return the element type of a name; None for an unknown or empty one."""
    try:
        return dtypes.as_dtype(name) if isinstance(name, str) and name else None
    except (PasslibError, TypeError, ValueError):
        return None


def _of_code(code: Any) -> np.dtype | None:
    return np.dtype(_CODES[code]) if type(code) is int and 0 <= code < len(_CODES) else None


def _shape(sizes: Any) -> Shape | None:
    if not isinstance(sizes, list) or not all(type(size) is int for size in sizes):
        return None
    return tuple(size if size >= 0 else None for size in sizes)
