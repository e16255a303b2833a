"""Types of all values of an ONNX graph, by ONNX's own inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import ABSENT, ID
from passlib.dialects.onnx.lowering.model import detached_weights
from passlib.dialects.onnx.lowering.types import fix_sizes, put_stand_ins, spec_of, tensor_spec
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.reading import Document, document_of
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.soundness.model import versions_of
from passlib.dialects.onnx.writing.assembly import assemble
from passlib.graph.plain import PlainGraph, whole
from passlib.lowering import Graph, Shape
from passlib.lowering.types import TypeSpec

if TYPE_CHECKING:
    from passlib.graph.node import Node


def infer(
    graph: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype[Any]] | None = None,
    *,
    default_dtype: np.dtype[Any] | None = None,
    train: bool = False,
) -> dict[Node, tuple[TypeSpec, ...]]:
    """Infer the types of all values.

    Result: for each node, one for each of its outputs. Raises `GraphError` if shapes contradict
    each other, or a node does not have the form of its operator.

    Parameters
    ----------
    graph : PlainGraph
        A whole one.
    shapes : mapping of str to shape
        Of any variables.
    types : mapping of str to numpy.dtype, optional
        Of any variables.
    default_dtype, train
        Without effect: the file states all types, and has one form only.
    """
    plain = whole(graph)
    document = document_of(plain.attributes)
    nodes = plain.nodes()
    unknown = TypeSpec(None, None)
    given = {
        name: TypeSpec((types or {}).get(name), tuple(shape)) for name, shape in shapes.items()
    }
    new = {node.name for node in nodes if node.is_variable and ID not in node.attrs} - {ABSENT}
    new |= {node.name for node in nodes if _is_replaced(node, given.get(node.name), document)}
    fed = {name: given.get(name, unknown) for name in new}
    assembled = assemble(plain.graph, plain.attributes, document, {}, fed)
    for value in assembled.outline.graph.input:
        if value.type.WhichOneof("value") == "tensor_type":
            fix_sizes(value, given)
    known = _inferred(assembled.outline)
    known |= {tensor.name: tensor_spec(tensor) for tensor in assembled.outline.graph.initializer}
    names = assembled.names()
    found: dict[Node, tuple[TypeSpec, ...]] = {}
    for position, node in enumerate(nodes):
        specs = []
        for output in range(max(node.num_outputs, 1)):
            name = names.get((position, output), "")
            spec = known.get(name, unknown)
            own = given.get(node.name)
            if node.is_variable and own is not None:
                spec = TypeSpec(own.dtype or spec.dtype, own.shape)
            specs.append(spec)
        found[node] = tuple(specs)
    return found


def _is_replaced(node: Node, given: TypeSpec | None, document: Document) -> bool:
    """Whether a weight of the file has been given another type or shape."""
    array = document.constants.get(node.attrs.get(ID, "")) if node.is_variable else None
    if given is None or array is None:
        return False
    # By identity: NumPy takes None for float64.
    return given.shape != array.shape or (given.dtype is not None and given.dtype != array.dtype)


def _inferred(model: Any) -> dict[str, TypeSpec]:
    """Return the inferred types by name; those that the file states if inference fails."""
    graph = inferred(model).graph
    known: dict[bytes, TypeSpec] = {}
    specs = {}
    for value in (*graph.value_info, *graph.input, *graph.output):
        # A model has few types, and many values of each.
        data = value.type.SerializeToString()
        if data not in known:
            known[data] = spec_of(value.type)
        specs[value.name] = known[data]
    return specs


class NamedType(NamedTuple):
    """The type of a value in which unknown sizes have names.

    Attributes
    ----------
    code : int
        ONNX's number of the element type; 0 if unknown.
    sizes : tuple of (int, str or None) or None
        A size that two values share has one name. None for an unknown rank.
    """

    code: int
    sizes: tuple[int | str | None, ...] | None


def infer_names(
    graph: PlainGraph, params: Mapping[str, np.ndarray[Any, Any]]
) -> dict[tuple[str, int], NamedType]:
    """Infer the types of all values, where open sizes of the inputs keep their names.

    Shapes that the file states for values of ONNX's own operators are not used: files whose inputs
    were edited often state shapes that no longer hold. ``params``: weights by name. Result: by the
    name of the node and the number of its output. Raises `GraphError` if a node does not have the
    form of its operator.
    """
    document = document_of(graph.attributes)
    assembled = assemble(graph.graph, graph.attributes, document, dict(params), renew=False)
    model = assembled.outline
    detached_weights(assembled, model)
    put_stand_ins(model)
    for inner in graphs_within(model.graph):
        _forget_types(inner)
    _state_fixed_types(model)
    found = inferred(model, data=True).graph
    known = {
        value.name: _named(value.type.tensor_type)
        for value in (*found.value_info, *found.output, *found.input)
        if value.type.WhichOneof("value") == "tensor_type"
    }
    known |= {
        tensor.name: NamedType(tensor.data_type, tuple(tensor.dims)) for tensor in found.initializer
    }
    nodes = graph.graph.nodes()
    return {
        (nodes[position].name, output): known[name]
        for (position, output), name in assembled.names().items()
        if name in known
    }


def _forget_types(graph: Any) -> None:
    """Take the stated shapes out of a graph, but those of inputs and of foreign operators."""
    foreign = {name for node in graph.node if node.domain for name in node.output}
    stated = [value for value in graph.value_info if value.name in foreign]
    del graph.value_info[:]
    graph.value_info.extend(stated)
    for value in graph.output:
        if value.name not in foreign and value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")


def _state_fixed_types(model: Any) -> None:
    """State the element types of results for which an operator has no rule of inference.

    Its schema has them: one that is always the same, or that of an input.
    """
    versions = versions_of(model.opset_import)
    graph = model.graph
    stated = (*graph.value_info, *graph.input)
    codes = {value.name: value.type.tensor_type.elem_type for value in stated}
    codes |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        if node.domain not in _WITHOUT_RULES:
            continue
        for name, code in schema.output_types(node, versions, codes):
            if code and name and name not in codes:
                codes[name] = code
                graph.value_info.add(name=name).type.tensor_type.elem_type = code


_WITHOUT_RULES = ("ai.onnx.ml",)
"""Sets of ONNX with such operators."""


def _named(tensor: Any) -> NamedType:
    if not tensor.HasField("shape"):
        return NamedType(tensor.elem_type, None)
    return NamedType(
        tensor.elem_type,
        tuple(
            int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
            for dim in tensor.shape.dim
        ),
    )
