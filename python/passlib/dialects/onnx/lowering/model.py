"""ONNX graphs as models that ONNX Runtime runs: they are written without translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib.dialects.onnx import reading as external
from passlib.dialects.onnx.attributes import OPAQUE
from passlib.dialects.onnx.calls import values_of
from passlib.dialects.onnx.lowering.types import STRING, fix_sizes, spec_of
from passlib.dialects.onnx.nested import (
    external_tensors,
    graphs_within,
    put_inside,
    refill,
    rename_values,
)
from passlib.dialects.onnx.reading import Document, document_of
from passlib.dialects.onnx.soundness.acceptance import objection_to_types
from passlib.dialects.onnx.soundness.inference import open_sizes
from passlib.dialects.onnx.soundness.model import check_model, drop_omitted, name_omitted
from passlib.dialects.onnx.soundness.sizes import check_sizes
from passlib.dialects.onnx.tensors import ELEMENT_TYPES, PACKED, to_bytes
from passlib.dialects.onnx.writing.assembly import Assembled, assemble, assemble_for_file
from passlib.dialects.protocol import ModelData
from passlib.errors import PasslibError, UnsupportedError, listed
from passlib.graph.names import NameSource
from passlib.graph.plain import ORIGIN, whole
from passlib.lowering import Graph
from passlib.lowering.types import Lowered, TypeSpec, Value

if TYPE_CHECKING:
    from passlib.graph.node import Node


_INLINE = 1024
"""Weights of fewer bytes go into the model, where type inference sees them."""

_MOST_INSIDE = 1 << 30
"""Bytes of weights of nested graphs that go into the model; a message has at most 2 GB."""

_LIFTED = 1 << 16
"""Weights of nested graphs with fewer bytes go into the model in any case."""


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray[Any, Any]],
    *,
    train: bool = False,
) -> Lowered:
    """Make the model of a graph, with its weights outside the message.

    Raises `GraphError` if a shape contradicts the file's, a node does not have the form of its
    operator, or a value takes more memory than `passlib.limits` permits or has too many axes;
    `UnsupportedError` if ``train`` is set, or passlib does not feed or return values of an input's
    or output's type.

    Parameters
    ----------
    graph : PlainGraph
        A whole one.
    inputs : mapping of str to TypeSpec
        Types of the fed values; their sizes replace those that the file leaves open.
    params : mapping of str to numpy.ndarray
        Constants by name; missing ones have the file's elements.
    train : bool
        Must be false.
    """
    if train:
        raise UnsupportedError("an ONNX model runs as it is; it has no separate form for training")
    plain = whole(graph)
    document = document_of(plain.attributes)
    nodes = plain.nodes()
    # Opaque constants cannot be fed as arrays; keep them as initializers.
    fixed = {node.name for node in nodes if node.is_variable and OPAQUE in node.attrs}
    inputs = {name: spec for name, spec in inputs.items() if name not in fixed}
    assembled = assemble(
        plain.graph, plain.attributes, document, dict(params), inputs, omitted=ORIGIN
    )
    model = assembled.model
    weights = detached_weights(assembled, model)
    weights |= _place_others(model, document, set(weights))
    check_model(model)
    open_sizes(model)
    drop_omitted(model)
    name_omitted(model)
    for value in model.graph.input:
        _refuse_other_kinds(value, "input")
        fix_sizes(value, inputs)
    for value in model.graph.output:
        _refuse_other_kinds(value, "output")
    check_sizes(model)
    default = {tensor.name for tensor in model.graph.initializer}
    default.update(tensor.values.name for tensor in model.graph.sparse_initializer)
    return Lowered(
        model,
        weights,
        tuple(value.name for value in model.graph.input if value.name not in default),
        tuple(assembled.outputs),
        _values(assembled, nodes),
        {node.name: node for node in nodes if not node.is_variable},
    )


def detached_weights(assembled: Assembled, model: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Declare the larger weights as external, in the form that `runtime.Session` passes on.

    ``model`` is one that was assembled.
    """
    weights = {}
    for number, given in assembled.arrays.items():
        tensor = model.graph.initializer[number]
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        array = np.ascontiguousarray(given).reshape(given.shape)
        if array.nbytes < _INLINE or tensor.data_type in PACKED.values():
            tensor.raw_data = to_bytes(array)
            continue
        _set_apart(tensor, array)
        weights[tensor.name] = array
    return weights


def _set_apart(tensor: Any, array: np.ndarray[Any, Any]) -> None:
    tensor.data_location = external.EXTERNAL
    for key, text in (("location", "weights"), ("length", str(array.nbytes))):
        tensor.external_data.add(key=key, value=text)


def _place_others(
    model: Any, document: Document, weights: set[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """Read all other external data, such as that of nested graphs, into the model.

    If it is too much for a message, the larger weights of nested graphs become weights of the main
    graph, the only ones that ONNX Runtime takes as arrays. Result: these, by their new names.
    """
    if not document.has_external:
        return {}
    others = _others(model, weights)
    arrays = {
        id(each): document.folder.array(each.SerializeToString(), f"tensor {each.name!r}")
        for each in others
    }
    lifted: dict[str, np.ndarray[Any, Any]] = {}
    if sum(array.nbytes for array in arrays.values() if array is not None) > _MOST_INSIDE:
        main, *nested = graphs_within(model.graph)
        names = NameSource(set(values_of(main)))
        for graph in nested:
            lifted |= _lift(graph, main, arrays, names)
        others = _others(model, weights | lifted.keys())
    put_inside(others, document.folder)
    return lifted


def _others(model: Any, weights: set[str]) -> list[Any]:
    """Return the external tensors that are no weights of the main graph with these names."""
    # Held in a list, because ids of wrappers are unique only while the wrappers live.
    declared = [tensor for tensor in model.graph.initializer if tensor.name in weights]
    known = set(map(id, declared))
    return [tensor for tensor in external_tensors(model) if id(tensor) not in known]


def _lift(
    graph: Any, main: Any, arrays: Mapping[int, np.ndarray[Any, Any] | None], names: NameSource
) -> dict[str, np.ndarray[Any, Any]]:
    """Move the larger weights of a nested graph to the main graph."""
    stay = {value.name for value in (*graph.input, *graph.output)}
    lifted: dict[str, np.ndarray[Any, Any]] = {}
    kept, renamed = [], {}
    for tensor in list(graph.initializer):
        array = arrays.get(id(tensor))
        if array is None or array.nbytes < _LIFTED or tensor.name in stay:
            kept.append(tensor)
            continue
        made = main.initializer.add(
            name=names.fresh(tensor.name), data_type=tensor.data_type, dims=tensor.dims
        )
        _set_apart(made, array)
        renamed[tensor.name] = made.name
        lifted[made.name] = array
    refill(graph.initializer, kept)
    rename_values(renamed, graph)
    return lifted


def _refuse_other_kinds(value: Any, what: str) -> None:
    kind = value.type.WhichOneof("value")
    if kind in ("sparse_tensor_type", "opaque_type"):
        raise UnsupportedError(
            f"{what} {value.name!r} of the model is a {kind.removesuffix('_type')}; passlib runs "
            "models of tensors, sequences, maps and optional values"
        )
    code = value.type.tensor_type.elem_type
    if what == "input" and code and code not in (*ELEMENT_TYPES, STRING):
        raise UnsupportedError(
            f"input {value.name!r} of the model has elements of ONNX's type {code}; passlib feeds "
            f"strings, {', '.join(ELEMENT_TYPES.values())}"
        )


def _values(assembled: Assembled, nodes: list[Node]) -> dict[tuple[Node, int], Value]:
    """Return the model's values by node and output; only inputs and outputs have types."""
    graph = assembled.model.graph
    types = {value.name: spec_of(value.type) for value in (*graph.input, *graph.output)}
    return {
        (nodes[position], output): Value(name, *types.get(name, TypeSpec(None, None)))
        for (position, output), name in assembled.names().items()
    }


def misfit(model: ModelData) -> str:
    """Return what contradicts the graph in the weights of a model; empty if nothing.

    ONNX's strict inference decides, as when the model is saved: a weight may have another type
    than in the file, if the graph accepts it. What it has against the graph alone is not held
    against the weights.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {**model.args, **model.aux}
    graph, attributes = model.graph, model.attributes
    document = document_of(attributes)
    try:
        given = assemble_for_file(graph, attributes, document, arrays)
        if given is None:
            return ""
        found = objection_to_types(given.model, given.arrays)
        if not found:
            return ""
        before = {name: document.arrays.get(name, array) for name, array in arrays.items()}
        unknown = {name: TypeSpec(array.dtype, None) for name, array in before.items()}
        if objection_to_types(assemble(graph, attributes, document, {}, unknown).model, {}):
            return ""
    except PasslibError:
        return ""  # the graph has no form in ONNX, as saving and running report
    other = [
        f"{name!r} is {_type_of(array)}, in the file {_type_of(before[name])}"
        for name, array in arrays.items()
        if _type_of(array) != _type_of(before[name])
    ]
    return f"{listed(other, 3)}; {found}" if other else found


def _type_of(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype} {tuple(array.shape)}"
