"""Nodes of the operator Constant, which passes see as parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.dialects.onnx import attributes, tensors
from passlib.dialects.onnx.document import OriginalTensor
from passlib.dialects.onnx.external import EXTERNAL, Folder
from passlib.dialects.onnx.schema import CONSTANT, plain

__all__ = ["opaque_kind", "to_array", "value_of"]

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
"""The attributes of the operator; a node has one of them."""


def value_of(node: Any) -> Any:
    """Return the attribute with the value of a constant node; None for any other node."""
    if node.op_type != CONSTANT or plain(node.domain):
        return None
    if node.input or len(node.output) != 1 or not node.output[0] or len(node.attribute) != 1:
        return None
    value = node.attribute[0]
    if value.ref_attr_name or _CONSTANT_KINDS.get(value.name) != attributes.kind_of(value):
        return None
    return value


def to_array(value: Any, folder: Folder, place: str) -> np.ndarray[Any, Any] | None:
    """Return the elements of a constant.

    Parameters
    ----------
    value : onnx.AttributeProto
        As returned by `value_of`.
    folder : Folder
        For external data.
    place : str
        For messages.

    Returns
    -------
    numpy.ndarray or None
        None for strings, sparse tensors and types that NumPy cannot represent.

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
    """Return the element type of a constant that NumPy cannot represent, for `OPAQUE`."""
    if tensor.kind == "sparse":
        return "sparse"
    if tensor.kind == "initializer":
        return tensors.kind_of(tensor.proto)
    value = tensor.proto.attribute[0]
    kind = attributes.kind_of(value)
    if kind == attributes.TENSOR:
        return tensors.kind_of(value.t)
    return "sparse" if kind == attributes.SPARSE_TENSOR else "string"
