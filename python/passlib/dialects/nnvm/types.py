"""Element types and shapes: those that a file lists, and those of nodes that a pass added."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects.nnvm.operators import TVM_OPERATOR
from passlib.errors import PasslibError
from passlib.graph.attribute_text import parse_int, parse_optional_ints
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.lowering.types import Shape, TypeSpec

__all__ = ["UNKNOWN", "listed_types", "new_types"]

UNKNOWN = TypeSpec(None, None)

_CODES = (
    *("float32", "float64", "float16", "uint8", "int32", "int8", "int64"),
    *("int16", "uint16", "uint32", "uint64"),
)
"""NNVM's element types, by their codes."""

_SAME_TYPE = ("__nop", "__copy")
"""Functions of TVM's executor whose output is of their input's type."""


def listed_types(attributes: Mapping[str, Any]) -> list[TypeSpec]:
    """Read the types of all entries from the attributes of a graph."""
    shapes = _values(attributes, "shape")
    names = _values(attributes, "dltype")
    codes = _values(attributes, "dtype")
    count = max(map(len, (shapes, names, codes)))
    return [
        TypeSpec(
            _dtype(names[i]) if i < len(names) else _of_code(codes[i] if i < len(codes) else -1),
            _shape(shapes[i]) if i < len(shapes) else None,
        )
        for i in range(count)
    ]


def _values(attributes: Mapping[str, Any], name: str) -> Sequence[Any]:
    pair = attributes.get(name)
    if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list):
        return pair[1]
    return ()


def _dtype(name: Any) -> np.dtype | None:
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


def new_types(
    op: str,
    name: str,
    attributes: Mapping[str, str],
    inputs: Sequence[TypeSpec],
    count: int,
    arrays: Mapping[str, Any],
) -> list[TypeSpec]:
    """Find out the types of a new node's outputs.

    A pass may say them itself by the attributes ``__shape__`` and ``__dtype__``. Otherwise a
    variable has the type of its array, ``__nop`` and ``__copy`` have that of their input, and
    what is known of other operators gives the rest.

    Parameters
    ----------
    op, name : str
    attributes : mapping of str to str
    inputs : sequence of TypeSpec
    count : int
        Number of outputs.
    arrays : mapping of str to array
        Parameters by name.
    """
    found = [UNKNOWN] * count
    if op == VARIABLE:
        array = arrays.get(name)
        if isinstance(array, np.ndarray):
            found[0] = TypeSpec(array.dtype, tuple(array.shape))
    elif op == TVM_OPERATOR:
        if attributes.get("func_name") in _SAME_TYPE and inputs:
            found[0] = inputs[0]
    elif importlib.util.find_spec("onnx") is not None:
        found = _inferred(op, name, attributes, inputs, count)
    first = found[0]
    said = TypeSpec(
        _said_dtype(attributes.get("__dtype__")), _said_shape(attributes.get("__shape__"))
    )
    shape = first.shape if said.shape is None else said.shape
    found[0] = TypeSpec(said.dtype or first.dtype, shape)
    return found


def _inferred(
    op: str, name: str, attributes: Mapping[str, str], inputs: Sequence[TypeSpec], count: int
) -> list[TypeSpec]:
    from passlib.dialects.nnvm.lowering import infer_node

    variables = [Node(VARIABLE, f"input{i}") for i in range(len(inputs))]
    node = Node(op, name, attributes, [Entry(variable) for variable in variables], count)
    known = {variable.name: spec for variable, spec in zip(variables, inputs, strict=True)}
    try:
        return infer_node(node, known)
    except PasslibError:
        return [UNKNOWN] * count


def _said_dtype(text: str | None) -> np.dtype | None:
    if text is None:
        return None
    try:
        return dtypes.from_code(parse_int(text))
    except (PasslibError, ValueError):
        return _dtype(text.strip())


def _said_shape(text: str | None) -> Shape | None:
    if text is None:
        return None
    try:
        return tuple(parse_optional_ints(text))
    except ValueError:
        return None
