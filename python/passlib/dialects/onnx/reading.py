"""ONNX files: mapped, with the data next to them, as graphs with weights."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.onnx.attributes import DOCUMENT, ID
from passlib.dialects.onnx.tensors import ELEMENT_TYPES, code_of, to_bytes
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, UnsupportedError
from passlib.files.optional import require
from passlib.files.regular import open_regular
from passlib.lowering.types import TypeSpec


def map_file(path: Path) -> _core.FileMapping | bytes:
    """Map a file into memory for reading."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return _core.FileMapping(file.fileno(), os.fsencode(path.absolute()))


def parse_model(
    data: _core.FileMapping | bytes, *, outline: bool = False
) -> tuple[Any, dict[int, np.ndarray[Any, Any]]]:
    """Parse a serialized model.

    ``outline``: cut long lists in attributes of operators that are not ONNX's own. Raises
    `FormatError` if the data is not an ONNX model.

    Returns
    -------
    model : onnx.ModelProto
        Without the raw data of its larger weights.
    payloads : dict of int to numpy.ndarray
        That raw data as bytes, by number of the initializer; views of ``data``.
    """
    onnx: Any = require("onnx", extra="onnx")
    decode_error: Any = require("google.protobuf.message", extra="onnx").DecodeError
    if not len(data):
        raise FormatError("the file is empty")
    message, spans = _core.strip_onnx(data, outline)
    try:
        model = onnx.ModelProto.FromString(message)
    except decode_error as error:
        raise FormatError(f"this is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise FormatError("this ONNX model has no graph")
    bytes_of = {
        number: np.frombuffer(memoryview(data), np.uint8, length, start)
        for number, (start, length) in spans.items()
    }
    return model, bytes_of


EXTERNAL = 1
"""``TensorProto.DataLocation`` of data outside the message."""


def location_of(tensor: Any) -> str:
    """Return the file of external data.

    Raises `FormatError` if the tensor names none, or states a place that is no number.
    """
    return _core.data_location(tensor.SerializeToString(), repr(tensor.name))


def set_location(tensor: Any, location: str, offset: int, length: int) -> None:
    """Set the location of a tensor's data; other entries stay, except a checksum."""
    tensor.data_location = EXTERNAL
    stated = [(entry.key, entry.value) for entry in tensor.external_data]
    new = {"location": location, "offset": str(offset), "length": str(length)}
    left = dict(new)
    del tensor.external_data[:]
    for key, value in stated:
        # Readers use the last entry of a key: no old one may stay behind the new one.
        if key in left:
            tensor.external_data.add(key=key, value=left.pop(key))
        elif key not in new and key != "checksum":
            tensor.external_data.add(key=key, value=value)
    for key, value in left.items():
        tensor.external_data.add(key=key, value=value)


class Folder:
    """The folder of a model: maps each data file once.

    Attributes
    ----------
    mapped : list of _core.FileMapping
        The files of the model that were mapped so far.
    arrays : mapping of str to numpy.ndarray
        Weights in memory, by the locations that a message states.
    """

    arrays: Mapping[str, np.ndarray[Any, Any]] = {}

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, tuple[Path, _core.FileMapping | bytes]] = {}
        self.mapped: list[_core.FileMapping] = []

    def file(self, location: str, place: str) -> tuple[Path, _core.FileMapping | bytes]:
        """Map the data file at a location, once.

        Raises `FormatError` if the location is absolute, leads out of the folder by ``..`` or a
        link, has no file, or is no path that a file can have.
        """
        found = self._files.get(location)
        if found is None:
            path = Path(os.fsdecode(_core.resolve_data(os.fsencode(self._path), location, place)))
            maps = dict(self._files.values())
            found = path, maps[path] if path in maps else map_file(path)
            if isinstance(found[1], _core.FileMapping):
                self.mapped.append(found[1])
            self._files[location] = found
        return found

    def array(self, tensor: bytes, place: str) -> np.ndarray[Any, Any] | None:
        """Map the data of a tensor, which is a serialized message.

        Result: read-only; None for element types that NumPy cannot represent. Raises `FormatError`
        if the location is not allowed, or the file is shorter than the tensor.
        """
        _, data = self.file(_core.data_location(tensor, place), place)
        code, shape, offset, _ = _core.data_span(data, tensor, place)
        if code not in ELEMENT_TYPES:
            return None
        return np.frombuffer(memoryview(data), _dtype_of(code), math.prod(shape), offset).reshape(
            shape
        )

    def content(self, tensor: bytes, place: str) -> bytes:
        """Read the data of a tensor of any type; raises the errors of `array`."""
        _, data = self.file(_core.data_location(tensor, place), place)
        *_, offset, size = _core.data_span(data, tensor, place)
        return data[offset : offset + size]


class Held(Folder):
    """In place of a folder, weights in memory, by the locations that a message states.

    Parameters
    ----------
    arrays : mapping of str to numpy.ndarray
    mapped : sequence of _core.FileMapping
        The files that the arrays may lie in.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray[Any, Any]],
        mapped: Sequence[_core.FileMapping],
    ) -> None:
        super().__init__(Path())
        self.arrays = arrays
        self.mapped = list(mapped)

    def file(self, location: str, place: str) -> tuple[Path, _core.FileMapping | bytes]:
        """Raise a `FormatError`: no file has the data."""
        raise FormatError(f"{place}: the data at {location!r} is in memory")

    def array(self, tensor: bytes, place: str) -> np.ndarray[Any, Any]:
        """Return the data of a tensor."""
        return self.arrays[_core.data_location(tensor, place)]

    def content(self, tensor: bytes, place: str) -> bytes:
        """Return the data of a tensor as bytes."""
        return to_bytes(self.array(tensor, place))


class Content(bytes):
    """A serialized model whose large weights are not in the message, but in memory or data files.

    They are initializers of the main graph and of nested ones, whose messages state them as
    external data.
    """

    weights: Folder

    @classmethod
    def of(cls, data: bytes, weights: Folder) -> Content:
        """Make one of a serialized model."""
        made = cls(data)
        made.weights = weights
        return made


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
    is_apart : bool
        Whether these places are not in files, but in memory.
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
        if isinstance(data, _core.FileMapping):
            folder.mapped.append(data)
        self.data = data
        self.path = path
        self.arrays = arrays
        self.file = file
        self.graph: _core.Graph = file.graph
        self.ir_version: int = file.ir_version
        self.import_list: list[tuple[str, int]] = file.imports()
        self.imports: dict[str, int] = dict(self.import_list)
        self.has_external: bool = file.has_external
        self.is_apart = isinstance(folder, Held)

    def check(self) -> None:
        """Raise a FormatError if a file of the model was changed after it was read."""
        for data in self.folder.mapped:
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
        held = self.folder.arrays if isinstance(self.folder, Held) else None
        return _joined, (self.path, list(self._pieces()), dict(self.arrays), held)

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
    path: Path,
    pieces: list[bytes | str],
    arrays: dict[str, np.ndarray[Any, Any]],
    held: Mapping[str, np.ndarray[Any, Any]] | None,
) -> Document:
    parts = (arrays[piece].tobytes() if isinstance(piece, str) else piece for piece in pieces)
    data = b"".join(parts)
    folder = Folder(path.parent) if held is None else Held(held, ())
    file = _core.OnnxFile(data)
    if file.has_external:  # nested graphs may have some of the data
        file.arrays(_dtype_of, folder.array)
    return Document(data, path, file, arrays, folder)


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

    Raises `UnsupportedError` if the graph did not come from an ONNX file, or was rebuilt without
    its attributes.
    """
    found = attributes.get(DOCUMENT)
    if isinstance(found, Reference):
        return found.document
    raise UnsupportedError(
        "this ONNX graph has lost the file it came from, and with it operator sets and types; "
        "use the symbol of a model returned by passlib.load or optimize_for"
    )


def read(path: Path) -> ModelData:
    """Read a model.

    Its weights are views of the mapped file and of the files next to it.

    Errors are those of `dialects.protocol.Dialect.load`.
    """
    return _read(map_file(path), path, Folder(path.parent))


def read_bytes(data: bytes) -> ModelData:
    """Read a model that is no file: as `read`, but its data cannot be in other files.

    Raises `UnsupportedError` if it is.
    """
    return _read(data, Path("model.onnx"), data.weights if isinstance(data, Content) else None)


def _read(data: _core.FileMapping | bytes, path: Path, folder: Folder | None) -> ModelData:
    try:
        file = _core.OnnxFile(data)
        if file.has_external and folder is None:
            raise UnsupportedError(
                "this ONNX model has data in other files, and bytes have no folder to look in; "
                "load it from its file"
            )
        own = Folder(path.parent) if folder is None else folder
        arrays = file.arrays(_dtype_of, own.array)
    except FormatError as error:
        raise error.within("the given bytes" if folder is None else path) from error
    folder = own
    document = Document(data, path, file, arrays, folder)
    attributes = {
        "ir_version": str(file.ir_version),
        "opset_import": json.dumps(document.imports),
        DOCUMENT: Reference.to(document),
    }
    return ModelData(file.graph, attributes, arrays, {}, document)


@cache
def _dtype_of(code: int) -> np.dtype[Any]:
    return dtypes.as_dtype(ELEMENT_TYPES[code])


OUTPUTS = "__outputs__"
"""The attribute of a graph that has them; graphs without it have the outputs of the file."""


class PresentOutput(NamedTuple):
    """One output: its name, and the node that computes it."""

    name: str
    key: str
    """The `ID` of the node; empty for a new one."""
    node: str
    output: int


class Present(NamedTuple):
    """The outputs that a graph is compared with.

    Attributes
    ----------
    by_place : bool
        Whether outputs of the same number keep their names whatever computes them, as after a
        pass. Outputs that a user chose have the names of their values.
    outputs : tuple of PresentOutput or None
        None stands for those of the file.
    """

    by_place: bool
    outputs: tuple[PresentOutput, ...] | None

    @classmethod
    def of(cls, graph: _core.Graph, names: Sequence[str]) -> Present:
        """Return the outputs of a graph under the names that it has now."""
        heads = graph.heads_with(ID)
        return cls(True, tuple(PresentOutput(n, *h) for n, h in zip(names, heads, strict=True)))

    def text(self) -> str:
        """Return the value of the attribute `OUTPUTS`."""
        return json.dumps([self.by_place, self.outputs])


def present_outputs(attributes: Mapping[str, str]) -> Present:
    """Return the outputs that the attributes of a graph state."""
    text = attributes.get(OUTPUTS)
    if text is None:
        return Present(True, None)
    by_place, outputs = json.loads(text)
    return Present(
        by_place, None if outputs is None else tuple(PresentOutput(*item) for item in outputs)
    )


def selection(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a graph whose outputs a user chose among those of another."""
    chosen = present_outputs(attributes)._replace(by_place=False)
    return {**attributes, OUTPUTS: chosen.text()}


def output_names(
    graph: _core.Graph, attributes: Mapping[str, str], document: Document
) -> list[str]:
    """Name the outputs of a main graph as writing does."""
    return _core.onnx_output_names(document.file, graph, present_outputs(attributes))


STATED: Final = "__stated__"
"""The attribute of a graph with types of values that inference may not know, by name."""


def stated_text(types: Mapping[str, TypeSpec]) -> str:
    """Return the value of the attribute `STATED`, with the types that are known and ONNX has."""
    stated = {}
    for name, spec in types.items():
        if spec.dtype is not None and spec.shape is not None:
            with suppress(UnsupportedError):
                stated[name] = code_of(spec.dtype, repr(name)), spec.shape
    return json.dumps(stated)
