"""What an ONNX file has beyond its graph: kept beside the graph, to write the file back from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from passlib import _core
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
"""Name of the variable that stands where an optional input is left out."""

DOCUMENT = "__document__"
"""Key of the graph's attribute by which a symbol keeps its document."""

ID = "__id__"
"""Place of a node in the file: ``12``, in nested graphs ``12.body.3``, ``initializer.0``."""

DOMAIN = "__domain__"
OVERLOAD = "__overload__"

FORMAL = "__formal_inputs__"
"""Of a node with nested graphs, how many of its inputs are the operator's own."""

CAPTURED = "__captured_inputs__"
"""How many inputs follow those, for values that its nested graphs take from outside."""

OUTER = "__outer__"
"""Of a variable in a nested graph, which input of the node around it it stands for."""

OPAQUE = "__opaque__"
"""Of a constant that no array can hold, its element type."""

DEFAULT = "__default__"
"""``True`` on an initializer that is only the default of an input: whoever runs the model may give
other values. Up to IR version 3 all initializers are listed as inputs, which says nothing."""

INPUTS_ALSO = 4
"""Up to the file version before this one, each initializer is an input of the graph as well."""

OWN_KEYS = frozenset((ID, DOMAIN, OVERLOAD, FORMAL, CAPTURED, OUTER, OPAQUE, DEFAULT))


class OriginalNode(NamedTuple):
    """A node as it stood in the file, and as passes saw it.

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
        """The attributes of the file, each an onnx.AttributeProto, by name."""
        return {value.name: value for value in self.proto.attribute}


class OriginalTensor(NamedTuple):
    """A constant as it stood in the file.

    Attributes
    ----------
    kind : {"initializer", "sparse", "constant"}
    proto : onnx.TensorProto, onnx.SparseTensorProto or onnx.NodeProto
    name : str
    array : numpy.ndarray or None
        The elements; None where no array can hold them.
    order : int
        Its number among those of its kind in its graph.
    detached : bool
        Whether ``proto`` lacks the raw data, which is in ``array`` alone.
    external : bool
        Whether the data is in another file.
    input : (onnx.ValueInfoProto, int) or None
        The input of the graph whose default it is, and its number.
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
    """A model as it stood in the file. Nothing in it changes after reading.

    Attributes
    ----------
    model : onnx.ModelProto
        Without the larger weights.
    path : Path
        The file.
    has_external : bool
        Whether any data may be in other files.
    nodes : mapping of str to OriginalNode
        By `ID`, nested graphs included, but for constants.
    inputs : mapping of str to (onnx.ValueInfoProto, int)
        The inputs of graphs with their numbers, by `ID`.
    tensors : mapping of str to OriginalTensor
        Initializers and nodes that are constants, by `ID`.
    names : set of str
        All names of values, nested graphs included.
    graphs : mapping of str to onnx.GraphProto
        The nested graphs by place: ``12.body``.
    graph : _core.Graph or None
        What was made of it all.
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

    def attribute(self, place: str) -> Any:
        """Find an attribute by the place that `attributes.to_text` was given; None if unknown."""
        owner, _, name = place.partition("/")
        found = self.nodes.get(owner)
        return None if found is None else found.values.get(name)


class Reference(str):
    """The text of a graph's attribute that leads to the document, as long as the symbol lives."""

    document: Document

    @classmethod
    def to(cls, document: Document) -> Reference:
        """Make the attribute for a document."""
        made = cls("{}")
        made.document = document
        return made


def document_of(attributes: Mapping[str, str]) -> Document:
    """Find the document that belongs to a symbol.

    Raises
    ------
    UnsupportedError
        The symbol did not come from an ONNX file, or was rebuilt without its attributes.
    """
    found = attributes.get(DOCUMENT)
    if isinstance(found, Reference):
        return found.document
    raise UnsupportedError(
        "this ONNX graph has lost the file it came from, and with it operator sets and types; "
        "use the symbol of a model that passlib.load gave, or of optimize_for"
    )
