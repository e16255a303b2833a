"""The types of ONNX attributes."""

from __future__ import annotations

from typing import Any

ABSENT = "__absent__"
"""Name of the variable that stands for an omitted optional input."""

DOCUMENT = "__document__"
"""Key of the graph's attribute that holds the document."""

ID = "__id__"
"""Place of a node in the file: ``12``, in nested graphs ``12.body.3``, ``initializer.0``."""

DOMAIN = "__domain__"

FORMAL = "__formal_inputs__"
"""Number of inputs of a node with nested graphs that are the operator's own."""

CAPTURED = "__captured_inputs__"
"""Number of inputs after those, for values that its nested graphs capture."""

OUTER = "__outer__"
"""The input of the enclosing node that a variable of a nested graph stands for."""

OPAQUE = "__opaque__"
"""Element type of a constant that NumPy cannot represent."""

DIM_PARAMS = "__dim_params__"
"""Names of the open sizes that ``__shape__`` of an input states, separated by commas."""

INPUTS_ALSO = 4
"""Before this file version, each initializer is an input of the graph as well."""


FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS = range(1, 11)
SPARSE_TENSOR, SPARSE_TENSORS, TYPE_PROTO, TYPE_PROTOS = 11, 12, 13, 14

_FIELDS = {
    FLOAT: "f",
    INT: "i",
    STRING: "s",
    TENSOR: "t",
    GRAPH: "g",
    FLOATS: "floats",
    INTS: "ints",
    STRINGS: "strings",
    TENSORS: "tensors",
    GRAPHS: "graphs",
    SPARSE_TENSOR: "sparse_tensor",
    SPARSE_TENSORS: "sparse_tensors",
    TYPE_PROTO: "tp",
    TYPE_PROTOS: "type_protos",
}


def kind_of(attribute: Any) -> int:
    """Return the type of an attribute; models of the first versions leave it out.

    Result: as in ``AttributeProto.AttributeType``; 0 if unknown.
    """
    if attribute.type:
        return int(attribute.type)
    present = {field.name for field, _ in attribute.ListFields()}
    return next((kind for kind, field in _FIELDS.items() if field in present), 0)


def is_graph(attribute: Any) -> bool:
    """Whether an attribute holds nested graphs."""
    return kind_of(attribute) in (GRAPH, GRAPHS)


def graphs_of(attribute: Any) -> list[Any]:
    """Return the nested graphs of an attribute; none if it is of another type."""
    kind = kind_of(attribute)
    if kind == GRAPH:
        return [attribute.g]
    return list(attribute.graphs) if kind == GRAPHS else []
