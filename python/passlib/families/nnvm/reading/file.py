"""From the text of a file to the graph and the attributes that passes see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import passlib._core as _core
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError
from passlib.families.nnvm.printing import NNVM, print_value
from passlib.families.nnvm.reading.structure import GRAPH_ATTRIBUTE_KEYS
from passlib.families.nnvm.reading.template import GraphTemplate, read
from passlib.files.regular import memory_named, read_regular

ATTRIBUTES: Final = "attrs"
"""The name of a graph's typed attributes for passes, whatever their key in the file."""

STRUCTURE: Final = ("nodes", "arg_nodes", "node_row_ptr", "heads")
"""Members of a graph object that define the graph."""


@dataclass(frozen=True)
class Document:
    """A file that was read.

    Attributes
    ----------
    text : bytes
    native : _core.Graph
        The graph that passes see, which must not be changed.
    attributes : mapping of str to str
        The top-level members that passes see, as JSON by key.
    weights : tuple of str
        Names in the weight file next to it, in its order.
    mxnet_weights : bool
        Whether the weight file was one of MXNet's, with names that begin ``arg:`` or ``aux:``.
    """

    text: bytes
    native: _core.Graph
    attributes: Mapping[str, str]
    weights: tuple[str, ...] = ()
    mxnet_weights: bool = False

    @cached_property
    def graph(self) -> GraphTemplate:
        """The graph object as parsed, which is needed for writing a changed model."""
        return replace(read(self.text)[0], graph=self.native)

    def is_of(self, model: ModelData) -> bool:
        """Whether a model is as it was read, but for its weights."""
        return dict(model.attributes) == self.attributes and self.native.equals(model.graph)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reread, (self.text, self.weights, self.mxnet_weights)


def _reread(text: bytes, weights: tuple[str, ...], mxnet_weights: bool) -> Document:
    return replace(load(text)[2], weights=weights, mxnet_weights=mxnet_weights)


def load(text: bytes) -> tuple[_core.Graph, dict[str, str], Document]:
    """Read a graph, its own attributes as JSON by key, and the document for writing it back.

    Raises
    ------
    FormatError
        The text is no graph.
    """
    template, graph = read(text)
    graph.check()
    attributes = own_attributes(template, text)
    return graph, attributes, Document(text, graph, dict(attributes))


def read_file(path: Path) -> tuple[_core.Graph, dict[str, str], Document]:
    """Read a file like `load`; the message of a FormatError has the path."""
    with memory_named(path):
        text = read_regular(path)
        try:
            return load(text)
        except FormatError as error:
            raise error.within(path) from error


def own_attributes(template: GraphTemplate, text: bytes) -> dict[str, str]:
    """Return the top-level members of a graph that passes see, as JSON by key."""
    found = {}
    for key, value in template.root.items():
        if key not in STRUCTURE:
            visible = ATTRIBUTES if key in GRAPH_ATTRIBUTE_KEYS else key
            found[visible] = print_value(value, text, NNVM).decode()
    return found
