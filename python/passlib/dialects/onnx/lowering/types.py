"""Element types and shapes that ONNX messages state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.dialects.onnx.document import Document
from passlib.errors import GraphError
from passlib.files.optional import require
from passlib.lowering.types import TypeSpec

__all__ = ["fix_sizes", "input_types", "spec_of", "tensor_spec"]


def spec_of(type_proto: Any) -> TypeSpec:
    """Return element type and shape of a TypeProto; unknown unless it is that of a tensor."""
    if type_proto.WhichOneof("value") != "tensor_type":
        return TypeSpec(None, None)
    tensor = type_proto.tensor_type
    dtype = _dtype_of(tensor.elem_type)
    if not tensor.HasField("shape"):
        return TypeSpec(dtype, None)
    return TypeSpec(
        dtype,
        tuple(
            int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None
            for dim in tensor.shape.dim
        ),
    )


def tensor_spec(tensor: Any) -> TypeSpec:
    """Return element type and shape of a TensorProto."""
    return TypeSpec(_dtype_of(tensor.data_type), tuple(tensor.dims))


def _dtype_of(code: int) -> np.dtype[Any] | None:
    helper: Any = require("onnx.helper", extra="onnx")
    try:
        dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        return None
    return dtype


def input_types(document: Document) -> dict[str, TypeSpec]:
    """Return the types that the file states for the inputs of its main graph."""
    return {
        value.name: spec_of(value.type)
        for key, (value, _) in document.inputs.items()
        if key.startswith("input.")
    }


def fix_sizes(value: Any, given: Mapping[str, TypeSpec]) -> None:
    """Replace the sizes that a tensor input leaves open by given ones.

    Parameters
    ----------
    value : onnx.ValueInfoProto
    given : mapping of str to TypeSpec
        By name of the input.

    Raises
    ------
    GraphError
        The given shape contradicts the stated one.
    """
    spec = given.get(value.name)
    tensor = value.type.tensor_type
    if spec is None or spec.shape is None or not tensor.HasField("shape"):
        return
    declared = spec_of(value.type).shape or ()
    if len(declared) != len(spec.shape) or any(
        want is not None and have is not None and want != have
        for want, have in zip(declared, spec.shape, strict=True)
    ):
        raise GraphError(
            f"input {value.name!r} was given shape {tuple(spec.shape)}, but the model states "
            f"{declared}"
        )
    for dim, size in zip(tensor.shape.dim, spec.shape, strict=True):
        if size is not None and not dim.HasField("dim_value"):
            dim.dim_value = size
