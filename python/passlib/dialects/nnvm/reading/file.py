"""From the text of a file to the graph and the attributes that passes see."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import passlib._core as _core
from passlib.dialects.nnvm.printing import NNVM, print_value
from passlib.dialects.nnvm.reading.document import Document, GraphTemplate, read
from passlib.dialects.nnvm.reading.structure import GRAPH_ATTRIBUTE_KEYS
from passlib.errors import FormatError
from passlib.files.regular import memory_named, read_regular

__all__ = ["ATTRIBUTES", "STRUCTURE", "load", "own_attributes", "read_file"]

ATTRIBUTES: Final = "attrs"
"""The name of a graph's typed attributes for passes, whatever their key in the file."""

STRUCTURE: Final = ("nodes", "arg_nodes", "node_row_ptr", "heads")
"""Members of a graph object that define the graph."""


def load(text: bytes) -> tuple[_core.Graph, dict[str, str], Document]:
    """Read a graph, its own attributes as JSON by key, and the document for writing it back.

    Raises
    ------
    FormatError
        The text is no graph.
    """
    graph, document = read(text)
    return graph, own_attributes(document.graph, text), document


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
            name = ATTRIBUTES if key in GRAPH_ATTRIBUTE_KEYS else key
            found[name] = print_value(value, text, NNVM).decode()
    return found
