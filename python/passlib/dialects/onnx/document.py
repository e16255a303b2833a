"""An ONNX file as it was read, kept with its graph: the file is written back from it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.onnx.keys import DOCUMENT
from passlib.dialects.onnx.originals import OriginalNode, Originals, OriginalTensor
from passlib.errors import UnsupportedError

__all__ = ["Document", "Reference", "document_of"]


class Document:
    """A model as it is in the file. Nothing in it changes after reading.

    The messages of the package onnx are made when they are first asked for.

    Parameters
    ----------
    data : mmap.mmap or bytes
        The file's content.
    path : Path
        The file.
    file : _core.OnnxFile
        What was read from it.
    arrays : mapping of str to numpy.ndarray
        Constants of the main graph that passes see as arrays.

    Attributes
    ----------
    graph : _core.Graph
        The graph that was read from the file.
    imports : dict of str to int
        Versions of operator sets by domain.
    has_external : bool
        Whether any tensor states a place for its data in another file.
    """

    def __init__(
        self,
        data: mmap.mmap | bytes,
        path: Path,
        file: _core.OnnxFile,
        arrays: Mapping[str, np.ndarray[Any, Any]],
    ) -> None:
        self.data = data
        self.path = path
        self.arrays = arrays
        self.graph: _core.Graph = file.graph
        self.imports: dict[str, int] = dict(file.imports())
        self.has_external: bool = file.has_external

    @cached_property
    def originals(self) -> Originals:
        """The messages of the file, and how they belong to the graph."""
        return Originals.of(self.data, self.graph, self.arrays)

    @property
    def model(self) -> Any:
        """The onnx.ModelProto, without the larger weights."""
        return self.originals.model

    @property
    def nodes(self) -> dict[str, OriginalNode]:
        """The operators by `ID`, nested graphs included, constants excluded."""
        return self.originals.nodes

    @property
    def inputs(self) -> dict[str, tuple[Any, int]]:
        """The inputs of graphs by `ID`: onnx.ValueInfoProto and number."""
        return self.originals.inputs

    @property
    def tensors(self) -> dict[str, OriginalTensor]:
        """Initializers and constant nodes by `ID`."""
        return self.originals.tensors

    @property
    def names(self) -> set[str]:
        """All names of values, nested graphs included."""
        return self.originals.names

    @property
    def graphs(self) -> dict[str, Any]:
        """The nested graphs, each an onnx.GraphProto, by place: ``12.body``."""
        return self.originals.graphs

    def main_tensors(self) -> Iterator[OriginalTensor]:
        """Iterate over the tensors that belong to the main graph, not to nested ones."""
        for key, tensor in self.tensors.items():
            if "." not in key.removeprefix("initializer.").removeprefix("sparse."):
                yield tensor

    def attribute(self, place: str) -> Any:
        """Return the attribute at a place, ``<id>/<name>``; None if there is none."""
        owner, _, name = place.partition("/")
        found = self.nodes.get(owner)
        return None if found is None else found.values.get(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _joined, (self.path, list(self._pieces()), dict(self.arrays))

    def _pieces(self) -> Iterator[bytes | str]:
        """Iterate over the content; large weights are stated by the names of their arrays."""
        _, spans = _core.strip_onnx(self.data)
        end = 0
        for number, (start, length) in spans.items():
            tensor = self.tensors[f"initializer.{number}"]
            if tensor.detached:
                yield self.data[end:start]
                yield tensor.name
                end = start + length
        yield self.data[end:]


def _joined(
    path: Path, pieces: list[bytes | str], arrays: dict[str, np.ndarray[Any, Any]]
) -> Document:
    parts = (arrays[piece].tobytes() if isinstance(piece, str) else piece for piece in pieces)
    data = b"".join(parts)
    return Document(data, path, _core.OnnxFile(data), arrays)


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
