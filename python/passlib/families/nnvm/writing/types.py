"""Element types and shapes of the nodes that a pass added."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.errors import PasslibError
from passlib.families.nnvm.lowering import infer_node
from passlib.families.nnvm.reading.types import named_dtype
from passlib.families.nnvm.schema import TVM_OPERATOR
from passlib.graph.attribute_text import parse_int, parse_optional_ints
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.lowering.types import Shape, TypeSpec

UNKNOWN = TypeSpec(None, None)

_SAME_TYPE = ("__nop", "__copy")
"""Functions of TVM's executor whose output has their input's type."""


def new_types(
    op: str,
    name: str,
    attributes: Mapping[str, str],
    inputs: Sequence[TypeSpec],
    count: int,
    arrays: Mapping[str, Any],
) -> list[TypeSpec]:
    """Determine the types of a new node's outputs.

    A pass may state them in the attributes ``__shape__`` and ``__dtype__``. Otherwise a variable
    has the type of its array, ``__nop`` and ``__copy`` have that of their input, and those of
    other operators are inferred if ``onnx`` is installed.

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
    stated = stated_type(attributes)
    shape = first.shape if stated.shape is None else stated.shape
    found[0] = TypeSpec(stated.dtype or first.dtype, shape)
    return found


def _inferred(
    op: str, name: str, attributes: Mapping[str, str], inputs: Sequence[TypeSpec], count: int
) -> list[TypeSpec]:
    variables = [Node(VARIABLE, f"input{i}") for i in range(len(inputs))]
    node = Node(op, name, attributes, [Entry(variable) for variable in variables], count)
    known = {variable.name: spec for variable, spec in zip(variables, inputs, strict=True)}
    try:
        return infer_node(node, known)
    except PasslibError:
        return [UNKNOWN] * count


def stated_type(attributes: Mapping[str, str]) -> TypeSpec:
    """Read the type that a pass states in the attributes of a node."""
    return TypeSpec(
        _stated_dtype(attributes.get("__dtype__")), _stated_shape(attributes.get("__shape__"))
    )


def _stated_dtype(text: str | None) -> np.dtype | None:
    if text is None:
        return None
    try:
        return dtypes.from_code(parse_int(text))
    except (PasslibError, ValueError):
        return named_dtype(text.strip())


def _stated_shape(text: str | None) -> Shape | None:
    if text is None:
        return None
    try:
        return tuple(parse_optional_ints(text))
    except ValueError:
        return None
