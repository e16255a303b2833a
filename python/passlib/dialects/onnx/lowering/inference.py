"""Types of all values of an ONNX graph, by facts of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from passlib.dialects.onnx.attributes import ABSENT, ID
from passlib.dialects.onnx.lowering.types import fix_sizes, spec_of, tensor_spec
from passlib.dialects.onnx.reading import Document, document_of
from passlib.dialects.onnx.soundness.inference import inferred, without_weights
from passlib.dialects.onnx.writing.assembly import assemble
from passlib.graph.plain import whole
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
    given = {
        name: TypeSpec((types or {}).get(name), tuple(shape)) for name, shape in shapes.items()
    }
    new = {node.name for node in nodes if node.is_variable and ID not in node.attrs} - {ABSENT}
    new |= {node.name for node in nodes if _is_replaced(node, given.get(node.name), document)}
    fed = {name: given.get(name, _UNKNOWN) for name in new}
    assembled = assemble(plain.graph, plain.attributes, document, {}, fed, given=given)
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
            spec = known.get(name, _UNKNOWN)
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
    """Return the types of values by name, as far as facts know them or the file states them."""
    graph = inferred(without_weights(model, {})).graph
    values = (*graph.value_info, *graph.output, *graph.input)
    return {value.name: spec_of(value.type) for value in values}


_UNKNOWN: Final = TypeSpec(None, None)
