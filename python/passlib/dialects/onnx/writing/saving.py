"""Storing an ONNX model with the files that belong to it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx import reading as external
from passlib.dialects.onnx.nested import external_tensors
from passlib.dialects.onnx.reading import Content, Document, document_of, map_file, parse_model
from passlib.dialects.onnx.soundness.acceptance import (
    MOST_KINDS,
    are_accepted,
    check_accepted,
    loses_captured_casts,
)
from passlib.dialects.onnx.writing.assembly import (
    Assembled,
    Placement,
    as_in_file,
    assemble_for_file,
    check_replaceable,
    data_left_behind,
    folders_of,
)
from passlib.dialects.onnx.writing.options import (
    converted,
    hold,
    is_from_file,
    place,
    put_inside,
)
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.files.copying import write_array
from passlib.files.regular import Save, free_name

_BYTES = 2
"""The wire type of messages, strings and bytes."""

_GRAPH = 7
_INITIALIZER, _RAW_DATA = 5, 9


def _head(number: int, length: int) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(length)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _write(file: BinaryIO, model: Any, payloads: Mapping[int, np.ndarray[Any, Any]]) -> None:
    """Write a model, which loses its graph, with the raw data of some initializers from arrays.

    ``payloads`` has contiguous arrays by number of the initializer in the main graph. Protocol
    buffers' encoding: https://protobuf.dev/programming-guides/encoding; field numbers: onnx.proto.
    """
    if not payloads:
        file.write(model.SerializeToString())
        return
    heads = []
    for number, tensor in enumerate(model.graph.initializer):
        message = tensor.SerializeToString()
        array = payloads.get(number)
        if array is not None:
            message += _head(_RAW_DATA, array.nbytes)
        size = len(message) + (0 if array is None else array.nbytes)
        heads.append(_head(_INITIALIZER, size) + message)
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    data = sum(array.nbytes for array in payloads.values())
    file.write(model.SerializeToString())
    file.write(_head(_GRAPH, len(graph) + sum(map(len, heads)) + data))
    file.write(graph)
    for number, head in enumerate(heads):
        file.write(head)
        if number in payloads:
            write_array(file, payloads[number])


INLINE_LIMIT = (1 << 31) - (1 << 24)
"""The weights of models of more bytes than this move to a separate file.

A protobuf message is limited to 2 GiB.
"""

_SMALL = 1024
"""Arrays of fewer bytes always stay in the model."""


def _store(
    path: Path, assembled: Assembled | None, document: Document, placement: Placement | None = None
) -> tuple[str, ...]:
    """Write a model; external data that it was read with is written next to it.

    Result: the files written, the model first. ``assembled``: its model is consumed; None stands
    for that of the file. ``placement``: where the weights go, by default where they were, as far as
    possible. Raises `FormatError` if a data file is missing, or outside the folder;
    `UnsupportedError` if the placement needs a file that it cannot have, or puts too much into the
    model; `OSError` if a file cannot be written.
    """
    unchanged = assembled is None
    if assembled is None:
        if placement is None and not document.has_external and len(document.data) <= INLINE_LIMIT:
            with _saving(path, document) as save, save.replace(path).open("wb") as file:
                file.write(memoryview(document.data))
            return (str(path),)
        assembled = as_in_file(document)
    as_written = placement is None and not document.has_external and not assembled.edited
    if as_written and assembled.writer.size <= INLINE_LIMIT:
        with _saving(path, document) as save, save.replace(path).open("wb") as file:
            assembled.writer.write_to(file.fileno())
        return (str(path),)
    target = placement.target(path) if placement is not None else None
    if target is not None:
        check_replaceable(path, target)
    needed: set[Path] = set()
    with _saving(path, document, needed) as save:
        partial = save.replace(path)
        files = _DataFiles(path, document, assembled, save, needed)
        inline = files.as_before() if placement is None else files.as_asked(placement, target)
        with partial.open("wb") as file:
            as_read = unchanged and placement is None and not document.is_apart
            if as_read and not files.moved:
                file.write(document.data)
            else:
                plain = {n: np.ascontiguousarray(array) for n, array in inline.items()}
                _write(file, assembled.model, plain)
    written = list(files.made)
    if written and target is not None and target != written[0]:
        _rename(path, written[0], target)
        written = [target]
    return (str(path), *map(str, written))


@contextmanager
def _saving(
    path: Path, document: Document | None = None, needed: Set[Path] = frozenset()
) -> Iterator[Save]:
    """Save a model, and delete the data files that only the replaced one needed."""
    folders = folders_of(path)
    with Save(path, left=lambda: data_left_behind(path, folders) - needed) as save:
        yield save
        if document is not None:
            document.check()


def _rename(path: Path, data: Path, target: Path) -> None:
    """Rename the data file of a model over an older one, which the model does not use."""
    model, payloads = parse_model(map_file(path))
    for tensor in external_tensors(model):
        _rename_location(tensor, target.relative_to(path.parent).as_posix())
    with _saving(path) as save:
        made = save.replace(target)
        shutil.copyfile(data, made)  # the package onnx refuses a file of two names
        with save.replace(path).open("wb") as file:
            _write(file, model, payloads)


class _DataFiles:
    """Writes the files next to a model.

    Parameters
    ----------
    path : Path
        Of the model.
    assembled : Assembled
        Its messages get the new locations.
    save : Save
        Renames the files once all of them are complete, the model last.
    needed : set of Path
        Gets the files of the original with data that is not mapped: the model in memory needs them.

    Attributes
    ----------
    made : dict of Path to Path
        The new data files, and what they are called until the save succeeds.
    moved : bool
        Whether any data has another location than in the original.
    """

    def __init__(
        self, path: Path, document: Document, assembled: Assembled, save: Save, needed: set[Path]
    ) -> None:
        self._path = path
        self._document = document
        self._assembled = assembled
        self._arrays = assembled.arrays
        self._changed = assembled.external
        self._model = assembled.model
        self._tensors = assembled.model.graph.initializer
        self._save = save
        self._needed = needed
        self.made: dict[Path, Path] = {}
        self.moved = False

    def as_before(self) -> dict[int, np.ndarray[Any, Any]]:
        """Write weights where they were, and return those of the model by number."""
        large: set[int] = set()
        nested: list[tuple[Any, np.ndarray[Any, Any]]] = []
        folder = self._document.folder
        if self._document.is_apart:
            large = {n for n in self._changed if is_from_file(self._tensors[n], folder)}
            for number in self._changed:
                put_inside(self._tensors[number], None)
            self._changed = {}
            for tensor in external_tensors(self._model):
                array = folder.array(tensor, repr(tensor.name))
                assert array is not None
                nested.append((tensor, array))
        elif self._document.has_external:
            self._write_again()
        inline = {n: array for n, array in self._arrays.items() if n not in self._changed}
        moved = [(self._tensors[n], inline[n]) for n in sorted(large)]
        moved += [each for each in nested if is_from_file(each[0], folder)]
        size = self._size(inline) + sum(array.nbytes for _, array in nested)
        if size - sum(array.nbytes for _, array in moved) > INLINE_LIMIT:
            large = {n for n, array in inline.items() if array.nbytes >= _SMALL}
            moved = [*((self._tensors[n], inline[n]) for n in sorted(large)), *nested]
        elsewhere = {id(tensor) for tensor, _ in moved}
        for tensor, array in nested:
            if id(tensor) not in elsewhere:
                put_inside(tensor, array)
        if moved:
            self._write_apart(moved)
        return {n: array for n, array in inline.items() if n not in large}

    def _write_apart(self, weights: list[tuple[Any, np.ndarray[Any, Any]]]) -> None:
        """Write weights to a new data file; those that shared their data still do."""
        target = self._free_name(self._path.parent)
        written: dict[tuple[int, int], tuple[int, int]] = {}
        with self._create(target) as file:
            for tensor, array in weights:
                key = (array.ctypes.data, array.nbytes)
                if key in written:
                    external.set_location(tensor, target.name, *written[key])
                else:
                    written[key] = external.append(file, tensor, array, target.name)
        self.moved = True

    def as_asked(
        self, placement: Placement, target: Path | None
    ) -> dict[int, np.ndarray[Any, Any]]:
        """Write weights where a placement wants them, and return those of the model by number.

        A file that is there already stays: until the new model is in place, the old one needs it.
        """
        if target is None:
            target = self._free_name(self._path.parent)
        elif target.exists():
            target = self._free_name(target.parent)
        # Held in a list, because ids of wrappers are unique only while the wrappers live.
        mapped = [self._tensors[number] for number in self._changed]
        known = set(map(id, mapped))
        for tensor in external_tensors(self._model):
            source = self._source(_file_of(tensor), needed=False)
            if source is not None and id(tensor) not in known:
                self._needed.add(source[0])

        def create() -> BinaryIO:
            target.parent.mkdir(parents=True, exist_ok=True)
            return self._create(target)

        folder = self._document.folder
        name = target.relative_to(self._path.parent).as_posix()
        place(self._assembled, placement, folder, name, create)
        size = self._size(self._arrays)
        if size > INLINE_LIMIT:
            way = "a smaller size_threshold" if placement.external else "external_data=True"
            raise UnsupportedError(
                f"{self._path}: the model would have {size:,} bytes, and the limit is "
                f"{INLINE_LIMIT:,}; save it with {way}"
            )
        return self._arrays

    def _size(self, inline: Mapping[int, np.ndarray[Any, Any]]) -> int:
        return int(self._model.ByteSize()) + sum(array.nbytes for array in inline.values())

    def _write_again(self) -> None:
        """Write the data files of the original next to the new model."""
        own: dict[str, list[int]] = {}
        for number in self._changed:
            own.setdefault(_file_of(self._tensors[number]), []).append(number)
        others: dict[str, list[Any]] = {}
        # Held in a list, because ids of wrappers are unique only while the wrappers live.
        mine = [self._tensors[number] for number in self._changed]
        known = set(map(id, mine))
        for tensor in external_tensors(self._model):
            if id(tensor) not in known:
                others.setdefault(_file_of(tensor), []).append(tensor)
        before = self._original_users()
        for location in {**own, **others}:
            numbers = own.get(location, [])
            users = others.get(location, [])
            source = self._source(location, needed=bool(users))
            if users and source is not None:
                self._needed.add(source[0])
            fresh = [number for number in numbers if self._changed[number]]
            complete = not fresh and len(numbers) == before.get(location, 0)
            target = self._path.parent / location
            if target.exists():
                if complete and source is not None and _is_at(source[1], target):
                    self._save.keep(target)
                    continue
                # The file stays until the new model is in place: another one leads to it.
                target = self._free_name(self._path.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            name = target.relative_to(self._path.parent).as_posix()
            if source is not None and (users or complete):
                # Others may use any part of the file: keep all of it, and append new data.
                with self._create(target) as file:
                    write_array(file, np.frombuffer(memoryview(source[1]), np.uint8))
                    for number in fresh:
                        self._append(file, number, name)
                for tensor in users + [self._tensors[n] for n in numbers]:
                    self.moved |= _rename_location(tensor, name)
            else:
                with self._create(target) as file:
                    self._write_all(file, numbers, name)

    def _source(
        self, location: str, *, needed: bool
    ) -> tuple[Path, _core.FileMapping | bytes] | None:
        """Return a data file of the original; None if it is gone and all its data is mapped."""
        try:
            return self._document.folder.file(location, str(self._path))
        except FormatError:
            if needed:
                raise
            return None

    def _write_all(self, file: BinaryIO, numbers: list[int], name: str) -> None:
        """Write arrays one after the other; those that shared their data still do."""
        shared: dict[tuple[int, int], tuple[int, int]] = {}
        for number in numbers:
            tensor = self._tensors[number]
            _, offset, _ = external.location_of(tensor, tensor.name)
            key = (offset, self._arrays[number].nbytes)
            if not self._changed[number] and key in shared:
                external.set_location(tensor, name, *shared[key])  # `_append` noted the move
                continue
            place = self._append(file, number, name)
            if not self._changed[number]:
                shared[key] = place

    def _append(self, file: BinaryIO, number: int, name: str) -> tuple[int, int]:
        """Write the array of an initializer at the end of a file, and set its location."""
        self.moved = True
        return external.append(file, self._tensors[number], self._arrays[number], name)

    def _original_users(self) -> dict[str, int]:
        """Count the initializers that passes saw as arrays in each data file of the original."""
        return Counter(
            _file_of(tensor)
            for tensor in self._document.model.graph.initializer
            if tensor.data_location == external.EXTERNAL and tensor.name in self._document.arrays
        )

    def _free_name(self, folder: Path) -> Path:
        """Choose a name for a data file that no other model uses."""
        return free_name(folder / self._path.name, "data", self.made)

    def _create(self, target: Path) -> BinaryIO:
        self.made[target] = self._save.replace(target, free=not target.exists())
        return self.made[target].open("wb")


def _is_at(data: _core.FileMapping | bytes, path: Path) -> bool:
    """Whether a path leads to a data file that was mapped."""
    if isinstance(data, _core.FileMapping):
        return data.is_at(os.fsencode(path))
    return path.stat().st_size == 0


def _file_of(tensor: Any) -> str:
    """Return the location of a tensor's data, normalised."""
    location, _, _ = external.location_of(tensor, tensor.name)
    return PurePosixPath(location).as_posix()


def _rename_location(tensor: Any, name: str) -> bool:
    """Set the file of a tensor's data; return whether it had another one."""
    renamed = False
    for entry in tensor.external_data:
        if entry.key == "location" and PurePosixPath(entry.value).as_posix() != name:
            entry.value = name
            renamed = True
    return renamed


def save(
    path: Path, model: ModelData, placement: Placement | None, opset: int | None
) -> tuple[str, ...]:
    """Write a model and its external data as a whole, or not at all.

    ``placement``: where weights lie; None for where the model had them. ``opset``: the operator set
    to convert to. Raises `GraphError` or `UnsupportedError` if ONNX's checker would refuse the
    file, or the model has no form as ONNX.
    """
    document, assembled = _checked(model, opset)
    return _store(path, assembled, document, placement)


def apart(model: ModelData, opset: int | None) -> Content:
    """Serialize a model without its large weights, as `save` writes it."""
    document, assembled = _checked(model, opset)
    assembled = assembled or as_in_file(document)
    weights = hold(assembled, document.folder)
    return Content.of(assembled.model.SerializeToString(), weights)


def is_refused(model: ModelData) -> bool:
    """Whether a change should not be written.

    ONNX's checker would refuse the file, ONNX Runtime lose a value, or training information or an
    annotation refer to a value that is gone or another one.
    """
    try:
        document, assembled = _assembled(model)
        if assembled is not None:
            _check(assembled, document)
    except (GraphError, UnsupportedError):
        return True
    if assembled is None:
        return False
    return assembled.writer.alters or loses_captured_casts(assembled.outline)


def _assembled(model: ModelData) -> tuple[Document, Assembled | None]:
    document = model.template
    if not isinstance(document, Document):
        document = document_of(model.attributes)
    args = model.args
    params = args if isinstance(args, dict) and not model.aux else {**args, **model.aux}
    return document, assemble_for_file(
        model.graph, model.attributes, document, params, model.omitted
    )


def _checked(model: ModelData, opset: int | None) -> tuple[Document, Assembled | None]:
    document, assembled = _assembled(model)
    made = None
    if opset is not None:
        made = converted(assembled or as_in_file(document), opset, lambda: document.outline)
    if made is not None:
        return document, made
    if assembled is not None:
        _check(assembled, document)
    return document, assembled


def _check(assembled: Assembled, document: Document) -> None:
    writer = assembled.writer
    kinds = None if assembled.edited else writer.kinds(MOST_KINDS)
    if kinds is None or not are_accepted(kinds, writer.changed_outputs()):
        shown = assembled.model if assembled.edited else assembled.outline
        check_accepted(shown, assembled.held, lambda: document.outline)
