"""An ONNX file as it was read, kept with its graph: the file is written back from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.external import Folder
from passlib.dialects.onnx.keys import DOCUMENT, ID
from passlib.dialects.onnx.parsing import parse_model
from passlib.errors import FormatError, UnsupportedError


class InputType(NamedTuple):
    """The type that a file states for an input."""

    code: int | None
    """As in ``TensorProto.DataType``; None unless it is a tensor."""
    sizes: list[int] | None
    """-1 for unknown ones; None for an unknown rank."""
    other: bool
    """Whether it is a sequence, a map, a sparse tensor or an optional value."""


class Document:
    """A model as it is in the file. Nothing in it changes after reading.

    The messages of the package onnx are made when they are first asked for.

    Parameters
    ----------
    data : _core.FileMapping or bytes
        The file's content.
    path : Path
        The file.
    file : _core.OnnxFile
        What was read from it.
    arrays : dict of str to numpy.ndarray
        Not to be changed. Constants of the main graph that passes see as arrays.
    folder : Folder
        The files with its other data.

    Attributes
    ----------
    file : _core.OnnxFile
    graph : _core.Graph
        The graph that was read from the file.
    ir_version : int
    imports : dict of str to int
        Versions of operator sets by domain.
    import_list : list of (str, int)
        The same as the file states them, in its order.
    has_external : bool
        Whether any tensor states a place for its data in another file.
    nested_bytes : dict of str to int
        The sizes of constants of nested graphs that were asked for, by `ID`.
    """

    def __init__(
        self,
        data: _core.FileMapping | bytes,
        path: Path,
        file: _core.OnnxFile,
        arrays: dict[str, np.ndarray[Any, Any]],
        folder: Folder,
    ) -> None:
        self.folder = folder
        self.data = data
        self.path = path
        self.arrays = arrays
        self.file = file
        self.graph: _core.Graph = file.graph
        self.ir_version: int = file.ir_version
        self.import_list: list[tuple[str, int]] = file.imports()
        self.imports: dict[str, int] = dict(self.import_list)
        self.has_external: bool = file.has_external
        self.nested_bytes: dict[str, int] = {}

    def check(self) -> None:
        """Raise a FormatError if a file of the model was changed after it was read."""
        for data in (self.data, *self.folder.mapped):
            if isinstance(data, _core.FileMapping):
                data.check()

    @cached_property
    def model(self) -> Any:
        """The onnx.ModelProto, without the larger weights."""
        try:
            return parse_model(self.data)[0]
        except FormatError as error:
            raise error.within(self.path) from error

    @cached_property
    def outline(self) -> Any:
        """The same with the long lists of attributes cut, for checks and inference."""
        return parse_model(self.data, outline=True)[0]

    @cached_property
    def inputs(self) -> dict[str, InputType]:
        """The types of the inputs of the main graph that have no default, by `ID`."""
        described = [InputType(*each) for each in self.file.inputs()]
        return {
            key: described[int(key.removeprefix("input."))]
            for _, key in self.graph.variables_with(ID)
            if key.startswith("input.")
        }

    @cached_property
    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """The constants of the main graph that passes see as arrays, by `ID`."""
        named = self.graph.variables_with(ID)
        return {key: self.arrays[name] for name, key in named if name in self.arrays}

    def __reduce__(self) -> tuple[Any, ...]:
        return _joined, (self.path, list(self._pieces()), dict(self.arrays))

    def _pieces(self) -> Iterator[bytes | str]:
        """Iterate over the content; large weights are stated by the names of their arrays."""
        end = 0
        if not self.has_external:
            _, spans = _core.strip_onnx(self.data)
            names = {key: name for name, key in self.graph.variables_with(ID)}
            for number, (start, length) in spans.items():
                name = names[f"initializer.{number}"]
                if name in self.arrays:
                    yield self.data[end:start]
                    yield name
                    end = start + length
        yield self.data[end:]


def _joined(
    path: Path, pieces: list[bytes | str], arrays: dict[str, np.ndarray[Any, Any]]
) -> Document:
    parts = (arrays[piece].tobytes() if isinstance(piece, str) else piece for piece in pieces)
    data = b"".join(parts)
    return Document(data, path, _core.OnnxFile(data), arrays, Folder(path.parent))


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
