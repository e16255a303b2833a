"""Element types and shapes that ONNX messages state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.onnx.attributes import ID
from passlib.dialects.onnx.reading import Document, InputType, document_of
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import InputError, UnsupportedError
from passlib.files.optional import require
from passlib.graph.attributes import parse_int, parse_optional_ints
from passlib.graph.node import VARIABLE
from passlib.graph.plain import PlainGraph, whole
from passlib.lowering import Graph
from passlib.lowering.types import TypeSpec, shape_text

if TYPE_CHECKING:
    from passlib.graph.plain import PlainGraph


STRING: Final = 8
"""ONNX's number of the element type of strings."""


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
    if code in ELEMENT_TYPES:
        return dtypes.as_dtype(ELEMENT_TYPES[code])
    helper: Any = require("onnx.helper", extra="onnx")
    try:
        dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        return None
    return dtype


def input_types(graph: _core.Graph, document: Document) -> dict[str, TypeSpec]:
    """Return the types that the file states for a graph's inputs, by their present names."""
    stated = document.inputs
    found = {
        name: _spec_of_input(stated[key]) for name, key in graph.variables_with(ID) if key in stated
    }
    # Types that a pass states for an input replace those of the file.
    for key in ("__shape__", "__dtype__"):
        for name, text in graph.variables_with(key):
            if name in found and text:
                found[name] = _restated(found[name], name, key, text)
    return found


def _restated(spec: TypeSpec, name: str, key: str, text: str) -> TypeSpec:
    try:
        if key == "__dtype__":
            return spec._replace(dtype=dtypes.from_code(parse_int(text)))
        sizes = parse_optional_ints(text)
    except ValueError as error:
        raise UnsupportedError(f"variable {name!r}: {key} {text[:80]!r}: {error}") from None
    return spec._replace(shape=tuple(size if size and size > 0 else None for size in sizes))


def _spec_of_input(stated: InputType) -> TypeSpec:
    dtype = None if stated.code is None else _dtype_of(stated.code)
    if stated.sizes is None:
        return TypeSpec(dtype, None)
    return TypeSpec(dtype, tuple(None if size < 0 else size for size in stated.sizes))


def other_inputs(graph: PlainGraph) -> frozenset[str]:
    """Return the inputs of a graph that are no tensors of numbers."""
    described = document_of(graph.attributes).inputs
    others = {key for key, kind in described.items() if kind.other or kind.code == STRING}
    if not others:
        return frozenset()
    variables = (node for node in graph.graph.nodes() if node.op == VARIABLE)
    return frozenset(node.name for node in variables if node.attrs.get(ID) in others)


def fix_sizes(value: Any, given: Mapping[str, TypeSpec]) -> None:
    """Replace the sizes that a tensor input leaves open by given ones.

    ``given``: by name of the input. Raises `InputError` as `check_sizes` does.
    """
    spec = given.get(value.name)
    tensor = value.type.tensor_type
    if spec is None or spec.shape is None or not tensor.HasField("shape"):
        return
    check_sizes(value.name, spec_of(value.type), spec.shape)
    for dim, size in zip(tensor.shape.dim, spec.shape, strict=True):
        if size is not None and not dim.HasField("dim_value"):
            dim.dim_value = size


def check_sizes(name: str, stated: TypeSpec, given: Sequence[int | None]) -> None:
    """Raise `InputError` if a shape given for an input contradicts the stated one."""
    if not fit(stated.shape, given):
        wanted = "no shape" if stated.shape is None else shape_text(stated.shape)
        raise InputError(
            f"input {name!r} was given shape {shape_text(tuple(given))}, but the model states "
            f"{wanted}"
        )


def fit(one: Sequence[int | None] | None, two: Sequence[int | None] | None) -> bool:
    """Whether two shapes may be equal; None stands for what is not known."""
    if one is None or two is None:
        return True
    return len(one) == len(two) and all(
        a is None or b is None or a == b for a, b in zip(one, two, strict=True)
    )


_CODES: Final = {
    number: dtypes.CODES[name] for number, name in ELEMENT_TYPES.items() if name in dtypes.CODES
}
"""MXNet's numbers of element types by ONNX's."""


def known_texts(
    graph: Graph, params: Mapping[str, np.ndarray[Any, Any]]
) -> list[tuple[str, str]] | None:
    """Return the types of all values if native inference knows them in full.

    ``params``: weights by name. Result: for each node the texts of ``__ext_shape__`` and
    ``__ext_dtype__``. None if a type is not a tensor's or has an open size, or if the file states
    another one. Operators of other domains have the types that an unchanged file states.
    """
    plain: PlainGraph = whole(graph)
    document = document_of(plain.attributes)
    unchanged = document.file.holds(plain.graph, "")
    opsets = json.loads(plain.attributes["opset_import"])
    facts = _core.GraphFacts(document.file, plain.graph, opsets, dict(params), stated=unchanged)
    return facts.texts(_CODES)
