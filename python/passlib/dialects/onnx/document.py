"""An ONNX file as it was read, kept with its graph: the file is written back from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from passlib import _core
from passlib.dialects.onnx.messages import graphs_within
from passlib.errors import UnsupportedError

__all__ = [
    "ABSENT",
    "CAPTURED",
    "DEFAULT",
    "DOCUMENT",
    "DOMAIN",
    "FORMAL",
    "ID",
    "INPUTS_ALSO",
    "OPAQUE",
    "OUTER",
    "OVERLOAD",
    "OWN_KEYS",
    "Document",
    "OriginalNode",
    "OriginalTensor",
    "Reference",
    "document_of",
]

ABSENT = "__absent__"
"""Name of the variable that stands for an omitted optional input."""

DOCUMENT = "__document__"
"""Key of the graph's attribute that holds the document."""

ID = "__id__"
"""Place of a node in the file: ``12``, in nested graphs ``12.body.3``, ``initializer.0``."""

DOMAIN = "__domain__"
OVERLOAD = "__overload__"

FORMAL = "__formal_inputs__"
"""Number of inputs of a node with nested graphs that are the operator's own."""

CAPTURED = "__captured_inputs__"
"""Number of inputs after those, for values that its nested graphs capture."""

OUTER = "__outer__"
"""The input of the enclosing node that a variable of a nested graph stands for."""

OPAQUE = "__opaque__"
"""Element type of a constant that NumPy cannot represent."""

DEFAULT = "__default__"
"""``True`` on an initializer that is the default of an input, which may be fed other values.

Up to IR version 3 every initializer is listed as an input, so none is marked.
"""

INPUTS_ALSO = 4
"""Before this file version, each initializer is an input of the graph as well."""

OWN_KEYS = frozenset((ID, DOMAIN, OVERLOAD, FORMAL, CAPTURED, OUTER, OPAQUE, DEFAULT))


class OriginalNode(NamedTuple):
    """A node as it is in the file, and as passes saw it.

    Attributes
    ----------
    proto : onnx.NodeProto
    name : str
        The name that passes see.
    attrs : mapping of str to str
        The attributes that passes see.
    """

    proto: Any
    name: str
    attrs: Mapping[str, str]

    @property
    def values(self) -> dict[str, Any]:
        """The node's attributes in the file, each an onnx.AttributeProto, by name."""
        return {value.name: value for value in self.proto.attribute}


class OriginalTensor(NamedTuple):
    """A constant as it is in the file.

    Attributes
    ----------
    kind : {"initializer", "sparse", "constant"}
    proto : onnx.TensorProto, onnx.SparseTensorProto or onnx.NodeProto
    name : str
    array : numpy.ndarray or None
        The elements; None if NumPy cannot represent them.
    order : int
        Its number among the constants of its kind in its graph.
    detached : bool
        Whether ``proto`` lacks the raw data, which is only in ``array``.
    external : bool
        Whether the data is in another file.
    input : (onnx.ValueInfoProto, int) or None
        The graph input whose default it is, and the input's number.
    """

    kind: str
    proto: Any
    name: str
    array: np.ndarray[Any, Any] | None
    order: int
    detached: bool = False
    external: bool = False
    input: tuple[Any, int] | None = None


@dataclass(frozen=True, eq=False)
class Document:
    """A model as it is in the file. Nothing in it changes after reading.

    Attributes
    ----------
    model : onnx.ModelProto
        Without the larger weights.
    path : Path
        The file.
    has_external : bool
        Whether any data may be in other files.
    nodes : mapping of str to OriginalNode
        By `ID`, nested graphs included, constants excluded.
    inputs : mapping of str to (onnx.ValueInfoProto, int)
        The inputs of graphs with their numbers, by `ID`.
    tensors : mapping of str to OriginalTensor
        Initializers and constant nodes, by `ID`.
    names : set of str
        All names of values, nested graphs included.
    graphs : mapping of str to onnx.GraphProto
        The nested graphs by place: ``12.body``.
    graph : _core.Graph or None
        The graph that was read from the file.
    """

    model: Any
    path: Path
    has_external: bool = False
    nodes: dict[str, OriginalNode] = field(default_factory=dict)
    inputs: dict[str, tuple[Any, int]] = field(default_factory=dict)
    tensors: dict[str, OriginalTensor] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    graphs: dict[str, Any] = field(default_factory=dict)
    graph: _core.Graph | None = None

    def main_tensors(self) -> Iterator[OriginalTensor]:
        """Iterate over the tensors that belong to the main graph, not to nested ones."""
        for key, tensor in self.tensors.items():
            if "." not in key.removeprefix("initializer.").removeprefix("sparse."):
                yield tensor

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling, each part of the model as its number in `_parts`."""
        parts = list(_parts(self.model.graph))
        numbers = {id(part): number for number, part in enumerate(parts)}
        state = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return _with_parts(state, lambda part: numbers[id(part)])

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = list(_parts(state["model"].graph))
        for key, value in _with_parts(state, lambda number: parts[number]).items():
            object.__setattr__(self, key, value)

    def attribute(self, place: str) -> Any:
        """Return the attribute at a place, ``<id>/<name>``; None if there is none."""
        owner, _, name = place.partition("/")
        found = self.nodes.get(owner)
        return None if found is None else found.values.get(name)


def _parts(graph: Any) -> Iterator[Any]:
    """Iterate over the messages of a graph that a document refers to, in a fixed order."""
    for level in graphs_within(graph):
        yield level
        yield from level.input
        yield from level.initializer
        yield from level.sparse_initializer
        yield from level.node


def _with_parts(state: Mapping[str, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the fields of a document with each part of the model converted."""

    def numbered(pair: tuple[Any, int] | None) -> tuple[Any, int] | None:
        return pair and (convert(pair[0]), pair[1])

    return {
        **state,
        "nodes": {k: n._replace(proto=convert(n.proto)) for k, n in state["nodes"].items()},
        "inputs": {k: numbered(pair) for k, pair in state["inputs"].items()},
        "tensors": {
            k: t._replace(proto=convert(t.proto), input=numbered(t.input))
            for k, t in state["tensors"].items()
        },
        "graphs": {k: convert(graph) for k, graph in state["graphs"].items()},
    }


class Reference(str):
    """The text of the graph's attribute `DOCUMENT`, with the document itself."""

    document: Document

    @classmethod
    def to(cls, document: Document) -> Reference:
        """Make the text for a document."""
        made = cls("{}")
        made.document = document
        return made


def document_of(attributes: Mapping[str, str]) -> Document:
    """Return the document that a graph's attributes lead to.

    Raises
    ------
    UnsupportedError
        The graph did not come from an ONNX file, or was rebuilt without its attributes.
    """
    found = attributes.get(DOCUMENT)
    if isinstance(found, Reference):
        return found.document
    raise UnsupportedError(
        "this ONNX graph has lost the file it came from, and with it operator sets and types; "
        "use the symbol of a model returned by passlib.load or optimize_for"
    )
