"""Nodes of the operator Constant as parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.dialects.onnx import attributes, tensors
from passlib.dialects.onnx.document import OriginalTensor
from passlib.dialects.onnx.external import EXTERNAL, Folder

__all__ = ["OPERATOR", "opaque_kind", "to_array", "value_of"]

OPERATOR = "Constant"

_DEFAULT_DOMAINS = ("", "ai.onnx")

_CONSTANT_KINDS = {
    "value": attributes.TENSOR,
    "sparse_value": attributes.SPARSE_TENSOR,
    "value_int": attributes.INT,
    "value_ints": attributes.INTS,
    "value_float": attributes.FLOAT,
    "value_floats": attributes.FLOATS,
    "value_string": attributes.STRING,
    "value_strings": attributes.STRINGS,
}
"""The attributes of the operator Constant, of which a node has one."""


def value_of(node: Any) -> Any:
    """Find the attribute with the value of a node that is a constant; None if it is none."""
    if node.op_type != OPERATOR or node.domain not in _DEFAULT_DOMAINS:
        return None
    if node.input or len(node.output) != 1 or not node.output[0] or len(node.attribute) != 1:
        return None
    value = node.attribute[0]
    if value.ref_attr_name or _CONSTANT_KINDS.get(value.name) != attributes.kind_of(value):
        return None
    return value


def to_array(value: Any, folder: Folder, place: str) -> np.ndarray[Any, Any] | None:
    """Give the elements of a constant.

    Parameters
    ----------
    value : onnx.AttributeProto
        What `value_of` gave.
    folder : Folder
        For external data.
    place : str
        For messages.

    Returns
    -------
    numpy.ndarray or None
        None for strings, sparse tensors and types that no array can hold.

    Raises
    ------
    FormatError
        The data is damaged.
    """
    kind = attributes.kind_of(value)
    if kind == attributes.TENSOR:
        if value.t.data_location == EXTERNAL:
            return folder.array(value.t, place)
        return tensors.to_array(value.t, place)
    if kind in (attributes.INT, attributes.INTS):
        return np.array(value.i if kind == attributes.INT else value.ints, np.int64)
    if kind in (attributes.FLOAT, attributes.FLOATS):
        return np.array(value.f if kind == attributes.FLOAT else value.floats, np.float32)
    return None


def opaque_kind(tensor: OriginalTensor) -> str:
    """Name the type of a constant that no array can hold."""
    if tensor.kind == "sparse":
        return "sparse"
    if tensor.kind == "initializer":
        return tensors.kind_of(tensor.proto)
    value = tensor.proto.attribute[0]
    kind = attributes.kind_of(value)
    if kind == attributes.TENSOR:
        return tensors.kind_of(value.t)
    return "sparse" if kind == attributes.SPARSE_TENSOR else "string"
