"""ONNX graphs as models that ONNX Runtime runs: they are written as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib.dialects.onnx import external
from passlib.dialects.onnx.document import ABSENT, ID, OPAQUE, Document, document_of
from passlib.dialects.onnx.messages import external_tensors
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.dialects.onnx.writer import Assembled, assemble, main_names
from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require
from passlib.lowering.types import Lowered, TypeSpec, Value

if TYPE_CHECKING:
    from passlib.graph.node import Node
    from passlib.graph.plain import PlainGraph

__all__ = ["infer", "input_types", "lower", "output_names"]

_INLINE = 1024
"""Weights of fewer bytes go into the model, where type inference sees them."""


def lower(
    symbol: PlainGraph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray[Any, Any]],
    *,
    train: bool = False,
) -> Lowered:
    """Make the model of a symbol, its weights beside it.

    Parameters
    ----------
    symbol : PlainGraph
    inputs : mapping of str to TypeSpec
        What will be fed; a size that the file leaves open becomes the one given here.
    params : mapping of str to numpy.ndarray
        Constants by name; those that are missing have the file's elements.
    train : bool
        Must be false.

    Returns
    -------
    Lowered

    Raises
    ------
    GraphError
        A shape contradicts the file's.
    UnsupportedError
        ``train``, or an input or output is no tensor.
    """
    if train:
        raise UnsupportedError(
            "an ONNX model is run as it stands; it has no other form for training"
        )
    document = document_of(symbol.attributes)
    # What no array can hold cannot be fed: it stays what it is.
    fixed = {node.name for node in symbol.nodes() if node.is_variable and OPAQUE in node.attrs}
    inputs = {name: spec for name, spec in inputs.items() if name not in fixed}
    assembled = assemble(symbol.graph, symbol.attributes, document, params, inputs)
    model = assembled.model
    weights = _weights(assembled)
    _read_others(model, document, set(weights))
    for value in model.graph.input:
        _refuse_other_kinds(value, "input")
        _fix_sizes(value, inputs.get(value.name))
    names = [value.name for value in model.graph.input]
    for value in model.graph.output:
        _refuse_other_kinds(value, "output")
    values: dict[tuple[Node, int], Value] = {}
    nodes = symbol.nodes()
    types = {value.name: spec_of(value.type) for value in model.graph.input}
    types |= {value.name: spec_of(value.type) for value in model.graph.output}
    for (position, output), name in assembled.names.of.items():
        values[nodes[position], output] = Value(name, *types.get(name, TypeSpec(None, None)))
    default = {tensor.name for tensor in model.graph.initializer}
    default.update(tensor.values.name for tensor in model.graph.sparse_initializer)
    return Lowered(
        model,
        weights,
        tuple(name for name in names if name not in default),
        tuple(assembled.names.outputs),
        values,
        {node.name: node for node in nodes if not node.is_variable},
    )


def _weights(assembled: Assembled) -> dict[str, np.ndarray[Any, Any]]:
    """Declare the larger weights as external, in the form that `runtime.Session` hands over."""
    weights = {}
    for number, given in assembled.arrays.items():
        tensor = assembled.model.graph.initializer[number]
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        array = np.ascontiguousarray(given).reshape(given.shape)
        if array.nbytes < _INLINE:
            tensor.raw_data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            continue
        tensor.data_location = external.EXTERNAL
        for key, text in (("location", "weights"), ("length", str(array.nbytes))):
            tensor.external_data.add(key=key, value=text)
        weights[tensor.name] = array
    return weights


def _read_others(model: Any, document: Document, weights: set[str]) -> None:
    """Take external data that no weight holds, such as that of nested graphs, into the model."""
    if not document.has_external:
        return
    declared = [tensor for tensor in model.graph.initializer if tensor.name in weights]
    known = set(map(id, declared))
    folder = external.Folder(document.path.parent)
    for tensor in external_tensors(model):
        if id(tensor) in known:
            continue
        tensor.raw_data = folder.content(tensor, f"tensor {tensor.name!r}")
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def _refuse_other_kinds(value: Any, what: str) -> None:
    kind = value.type.WhichOneof("value")
    if kind not in (None, "tensor_type"):
        raise UnsupportedError(
            f"{what} {value.name!r} of the model is a {kind.removesuffix('_type')}; passlib runs "
            "models of tensors only"
        )
    code = value.type.tensor_type.elem_type
    if what == "input" and code and code not in ELEMENT_TYPES:
        raise UnsupportedError(
            f"input {value.name!r} of the model has elements of ONNX's type {code}; passlib feeds "
            f"{', '.join(ELEMENT_TYPES.values())}"
        )


def _fix_sizes(value: Any, given: TypeSpec | None) -> None:
    """Put given sizes in place of those that an input leaves open."""
    tensor = value.type.tensor_type
    if given is None or given.shape is None or not tensor.HasField("shape"):
        return
    declared = spec_of(value.type).shape or ()
    if len(declared) != len(given.shape) or any(
        want is not None and have is not None and want != have
        for want, have in zip(declared, given.shape, strict=True)
    ):
        raise GraphError(
            f"input {value.name!r} was given shape {tuple(given.shape)}, but the model says "
            f"{declared}"
        )
    for dim, size in zip(tensor.shape.dim, given.shape, strict=True):
        if size is not None and not dim.HasField("dim_value"):
            dim.dim_value = size


def spec_of(type_proto: Any) -> TypeSpec:
    """Read element type and shape from a TypeProto; nothing is known of what is no tensor."""
    if type_proto.WhichOneof("value") != "tensor_type":
        return TypeSpec(None, None)
    tensor = type_proto.tensor_type
    helper: Any = require("onnx.helper", extra="onnx")
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except (KeyError, ValueError, TypeError):
        dtype = None
    if not tensor.HasField("shape"):
        return TypeSpec(dtype, None)
    return TypeSpec(
        dtype,
        tuple(
            int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None
            for dim in tensor.shape.dim
        ),
    )


def input_types(document: Document) -> dict[str, TypeSpec]:
    """Give what the file says of the inputs of its main graph."""
    return {
        value.name: spec_of(value.type)
        for key, (value, _) in document.inputs.items()
        if key.startswith("input.")
    }


def output_names(symbol: PlainGraph) -> list[str]:
    """Name the outputs of a symbol: as in the file, where it has as many."""
    return main_names(symbol.graph, document_of(symbol.attributes)).outputs


def infer(
    symbol: PlainGraph,
    shapes: Mapping[str, Sequence[int | None]],
    types: Mapping[str, np.dtype[Any]] | None = None,
    *,
    default_dtype: np.dtype[Any] | None = None,
    train: bool = False,
) -> dict[Node, tuple[TypeSpec, ...]]:
    """Infer the types of all values, by ONNX's own inference.

    Parameters
    ----------
    symbol : PlainGraph
    shapes : mapping of str to shape
        Of any variables.
    types : mapping of str to numpy.dtype, optional
        Of any variables.
    default_dtype, train
        Of no effect: the file says all types, and the model is one.

    Returns
    -------
    dict of Node to tuple of TypeSpec
        For each node one for each of its outputs.

    Raises
    ------
    GraphError
        Shapes contradict each other.
    """
    del default_dtype, train
    document = document_of(symbol.attributes)
    nodes = symbol.nodes()
    unknown = TypeSpec(None, None)
    given = {
        name: TypeSpec((types or {}).get(name), tuple(shape)) for name, shape in shapes.items()
    }
    new = {node.name for node in nodes if node.is_variable and ID not in node.attrs} - {ABSENT}
    new |= {node.name for node in nodes if _is_replaced(node, given.get(node.name), document)}
    fed = {name: given.get(name, unknown) for name in new}
    assembled = assemble(symbol.graph, symbol.attributes, document, {}, fed)
    for value in assembled.model.graph.input:
        if value.type.WhichOneof("value") == "tensor_type":
            _fix_sizes(value, given.get(value.name))
    known = _inferred(assembled.model)
    known |= {tensor.name: _spec_of_tensor(tensor) for tensor in assembled.model.graph.initializer}
    found: dict[Node, tuple[TypeSpec, ...]] = {}
    for position, node in enumerate(nodes):
        specs = []
        for output in range(max(node.num_outputs, 1)):
            name = assembled.names.of.get((position, output), "")
            spec = known.get(name, unknown)
            own = given.get(node.name)
            if node.is_variable and own is not None:
                spec = TypeSpec(own.dtype or spec.dtype, own.shape)
            specs.append(spec)
        found[node] = tuple(specs)
    return found


def _is_replaced(node: Node, given: TypeSpec | None, document: Document) -> bool:
    """Whether a weight of the file has been given another type or shape."""
    tensor = document.tensors.get(node.attrs.get(ID, "")) if node.is_variable else None
    if given is None or tensor is None or tensor.array is None:
        return False
    return given.shape != tensor.array.shape or given.dtype not in (None, tensor.array.dtype)


def _inferred(model: Any) -> dict[str, TypeSpec]:
    inference: Any = require("onnx.shape_inference", extra="onnx")
    # Where it fails, what the file itself says is still known.
    with suppress(inference.InferenceError, RuntimeError, ValueError):
        model = inference.infer_shapes(model)
    graph = model.graph
    known: dict[bytes, TypeSpec] = {}
    specs = {}
    for value in (*graph.value_info, *graph.input, *graph.output):
        # A model has few types, and many values of each.
        data = value.type.SerializeToString()
        if data not in known:
            known[data] = spec_of(value.type)
        specs[value.name] = known[data]
    return specs


def _spec_of_tensor(tensor: Any) -> TypeSpec:
    helper: Any = require("onnx.helper", extra="onnx")
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, ValueError, TypeError):
        dtype = None
    return TypeSpec(dtype, tuple(tensor.dims))
