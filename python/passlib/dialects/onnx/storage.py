"""Writing an ONNX model with the files that belong to it."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np

from passlib.dialects.onnx import external, wire
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.messages import external_tensors
from passlib.dialects.onnx.writer import Assembled
from passlib.files.atomic import replacing

__all__ = ["INLINE_LIMIT", "save"]

INLINE_LIMIT = (1 << 31) - (1 << 24)
"""Models of more bytes than this get their weights moved to a file of their own.

A message of protobuf ends at 2 GiB.
"""

_ALIGNMENT = 4096
"""Offsets of larger arrays in data files, so that they can be mapped."""

_SMALL = 1024
"""Arrays of fewer bytes stay in the model in any case."""


def save(path: Path, assembled: Assembled, document: Document) -> tuple[str, ...]:
    """Write a model; data that stood beside the file it was read from is written beside it.

    Parameters
    ----------
    path : Path
    assembled : Assembled
        Its model is used up.
    document : Document

    Returns
    -------
    tuple of str
        The files written, the model first.

    Raises
    ------
    FormatError
        A data file has gone, or leads out of the folder.
    OSError
        A file cannot be written.
    """
    with ExitStack() as stack:
        # What is entered first is renamed last: the model appears when its data is in place.
        partial = stack.enter_context(replacing(path))
        files = _DataFiles(path, document, stack)
        model = assembled.model
        arrays = assembled.arrays
        inline = {n: array for n, array in arrays.items() if n not in assembled.external}
        if document.has_external:
            files.write_again(model, arrays, assembled.external)
        if model.ByteSize() + sum(array.nbytes for array in inline.values()) > INLINE_LIMIT:
            large = {n: array for n, array in inline.items() if array.nbytes >= _SMALL}
            files.move_out(model, large)
            inline = {n: array for n, array in inline.items() if n not in large}
        with partial.open("wb") as file:
            plain = {n: np.ascontiguousarray(array) for n, array in inline.items()}
            wire.write(file, model, plain)
    return (str(path), *map(str, files.written))


class _DataFiles:
    """Writes the files beside a model.

    Parameters
    ----------
    path : Path
        Of the model.
    document : Document
    stack : ExitStack
        Renames the files when all of them are complete.
    """

    def __init__(self, path: Path, document: Document, stack: ExitStack) -> None:
        self._path = path
        self._document = document
        self._stack = stack
        self.written: list[Path] = []

    def move_out(self, model: Any, arrays: dict[int, np.ndarray[Any, Any]]) -> None:
        """Put arrays, by number of their initializer, into a new file."""
        target = self._free_name()
        with self._create(target) as file:
            for number, array in arrays.items():
                _append(file, model.graph.initializer[number], array, target.name)

    def write_again(
        self, model: Any, arrays: dict[int, np.ndarray[Any, Any]], changed: dict[int, bool]
    ) -> None:
        """Write the data files of the original beside the new model.

        Parameters
        ----------
        model : onnx.ModelProto
            Gets the new offsets.
        arrays : dict of int to numpy.ndarray
            By number of the initializer.
        changed : dict of int to bool
            Of the external ones among them, whether they changed.
        """
        own: dict[str, list[int]] = {}
        for number in changed:
            tensor = model.graph.initializer[number]
            own.setdefault(_file_of(tensor), []).append(number)
        others: dict[str, list[Any]] = {}
        # Held in a list, for the identity of a wrapper lasts only as long as the wrapper.
        mine = [model.graph.initializer[number] for number in changed]
        known = set(map(id, mine))
        for tensor in external_tensors(model):
            if id(tensor) not in known:
                others.setdefault(_file_of(tensor), []).append(tensor)
        before = self._original_users()
        for location in {**own, **others}:
            numbers = own.get(location, [])
            source = external.resolve(self._document.path.parent, location, str(self._path))
            fresh = [number for number in numbers if changed[number]]
            complete = not fresh and len(numbers) == before.get(location, 0)
            target = self._path.parent / location
            if target.exists() and target.samefile(source):
                if complete:
                    continue
                if not self._replaces_original():
                    target = self._free_name()
            target.parent.mkdir(parents=True, exist_ok=True)
            name = target.relative_to(self._path.parent).as_posix()
            users = others.get(location, [])
            if users or complete:
                # Others may use any part of the file: it stays, and what is new comes behind it.
                with self._create(target) as file, source.open("rb") as original:
                    shutil.copyfileobj(original, file, 1 << 24)
                    for number in fresh:
                        _append(file, model.graph.initializer[number], arrays[number], name)
                for tensor in users + [model.graph.initializer[n] for n in numbers]:
                    _rename_location(tensor, name)
            else:
                with self._create(target) as file:
                    self._write_all(file, model, arrays, numbers, changed, name)

    def _write_all(
        self,
        file: BinaryIO,
        model: Any,
        arrays: dict[int, np.ndarray[Any, Any]],
        numbers: list[int],
        changed: dict[int, bool],
        name: str,
    ) -> None:
        """Write arrays one behind the other; those that shared their data still do."""
        shared: dict[tuple[int, int], tuple[int, int]] = {}
        for number in numbers:
            tensor = model.graph.initializer[number]
            _, offset, _ = external.location_of(tensor, tensor.name)
            key = (offset, arrays[number].nbytes)
            if not changed[number] and key in shared:
                external.set_location(tensor, name, *shared[key])
                continue
            place = _append(file, tensor, arrays[number], name)
            if not changed[number]:
                shared[key] = place

    def _original_users(self) -> dict[str, int]:
        """Count the initializers of the file that passes saw, by their data file."""
        return Counter(
            _file_of(tensor.proto)
            for tensor in self._document.main_tensors()
            if tensor.external and tensor.array is not None
        )

    def _replaces_original(self) -> bool:
        original = self._document.path
        return self._path.exists() and original.exists() and self._path.samefile(original)

    def _free_name(self) -> Path:
        """Choose a data file that no other model uses."""
        first = self._path.with_name(f"{self._path.name}.data")
        replaced = self._path.exists() and not self._document.has_external
        if first not in self.written and (replaced or not first.exists()):
            return first
        number = 1
        # Those of this very save are not there yet.
        while (
            target := self._path.with_name(f"{self._path.name}.{number}.data")
        ).exists() or target in self.written:
            number += 1
        return target

    def _create(self, target: Path) -> BinaryIO:
        partial: Path = self._stack.enter_context(replacing(target))
        self.written.append(target)
        return partial.open("wb")


def _append(file: BinaryIO, tensor: Any, array: np.ndarray[Any, Any], name: str) -> tuple[int, int]:
    """Write an array at the end, and note on its tensor where it is."""
    if array.nbytes >= _ALIGNMENT:
        file.write(bytes(-file.tell() % _ALIGNMENT))
    offset = file.tell()
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    file.write(array.reshape(-1).view(np.uint8).data)
    external.set_location(tensor, name, offset, array.nbytes)
    return offset, array.nbytes


def _file_of(tensor: Any) -> str:
    """Give the location of a tensor's data, the same for all spellings of it."""
    location, _, _ = external.location_of(tensor, tensor.name)
    return PurePosixPath(location).as_posix()


def _rename_location(tensor: Any, name: str) -> None:
    for entry in tensor.external_data:
        if entry.key == "location" and PurePosixPath(entry.value).as_posix() != name:
            entry.value = name
