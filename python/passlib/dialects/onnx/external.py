"""Tensors whose data is in files next to an ONNX model."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.onnx.tensors import ELEMENT_TYPES, element_count
from passlib.errors import FormatError
from passlib.files.regular import open_regular

EXTERNAL = 1
"""``TensorProto.DataLocation`` of data outside the message."""

_ALIGNMENT = 4096
"""Alignment of larger arrays in data files, so that they can be mapped."""


def location_of(tensor: Any, place: str) -> tuple[str, int, int | None]:
    """Return file, offset and length (None: to the end of the file) of external data.

    Raises
    ------
    FormatError
        The file is not named, or offset or length is not a number.
    """
    stated = {entry.key: entry.value for entry in tensor.external_data}
    location = stated.get("location")
    if not isinstance(location, str) or not location:
        raise FormatError(f"{place}: external data without a location")
    numbers: list[int | None] = []
    for key in ("offset", "length"):
        text = stated.get(key)
        if text is None:
            numbers.append(None)
        elif isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20:
            numbers.append(int(text))
        else:
            raise FormatError(f"{place}: external data with {key} {text!r}")
    return location, numbers[0] or 0, numbers[1]


def set_location(tensor: Any, location: str, offset: int, length: int) -> None:
    """Set the location of a tensor's data; other entries stay, except a checksum."""
    tensor.data_location = EXTERNAL
    new = {"location": location, "offset": str(offset), "length": str(length)}
    for entry in tensor.external_data:
        if entry.key in new:
            entry.value = new.pop(entry.key)
    for key, value in new.items():
        tensor.external_data.add(key=key, value=value)
    # The checksum is that of the old data.
    kept = [entry for entry in tensor.external_data if entry.key != "checksum"]
    if len(kept) < len(tensor.external_data):
        copies = [(entry.key, entry.value) for entry in kept]
        del tensor.external_data[:]
        for key, value in copies:
            tensor.external_data.add(key=key, value=value)


def append(
    file: BinaryIO, tensor: Any, array: np.ndarray[Any, Any], location: str
) -> tuple[int, int]:
    """Write the elements of a tensor at the end of a data file, and set its location.

    Returns
    -------
    offset, length : int
        In bytes.
    """
    if array.nbytes >= _ALIGNMENT:
        file.write(bytes(-file.tell() % _ALIGNMENT))
    offset = file.tell()
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    file.write(array.reshape(-1).view(np.uint8).data)
    set_location(tensor, location, offset, array.nbytes)
    return offset, array.nbytes


def resolve(folder: Path, location: str, place: str) -> Path:
    """Return the file at a location, which must be inside the model's folder.

    Raises
    ------
    FormatError
        The location is absolute, leads out of the folder by ``..`` or a link, has no file, or is
        no path that a file can have.
    """
    pure = PurePosixPath(location)
    if pure.is_absolute() or ".." in pure.parts or "\0" in location or "\\" in location:
        raise FormatError(
            f"{place}: the location {location!r} of external data leads out of the model's "
            "folder; it must be a plain path relative to it"
        )
    try:
        (folder / location).lstat()
    except FileNotFoundError:
        pass  # reported below
    except (OSError, ValueError) as error:
        shown = repr(location[:80]) + ("..." if len(location) > 80 else "")
        reason = getattr(error, "strerror", None) or error
        raise FormatError(
            f"{place}: no file can be at the location {shown} of external data: {reason}"
        ) from error
    real = Path(os.path.realpath(folder / location))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise FormatError(
            f"{place}: the location {location!r} of external data is a link out of the model's "
            "folder; put the file itself there"
        )
    if not real.is_file():
        raise FormatError(f"{place}: there is no file {location!r} next to the model")
    return real


class Folder:
    """The folder of a model: maps each data file once.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, tuple[Path, _core.FileMapping | bytes]] = {}

    @property
    def mapped(self) -> Iterator[_core.FileMapping | bytes]:
        """The data files that were mapped so far."""
        return (data for _, data in self._files.values())

    def file(self, location: str, place: str) -> tuple[Path, _core.FileMapping | bytes]:
        """Map the data file at a location, once; see `resolve`."""
        found = self._files.get(location)
        if found is None:
            path = resolve(self._path, location, place)
            maps = dict(self._files.values())
            found = path, maps[path] if path in maps else _mapped(path)
            self._files[location] = found
        return found

    def array(self, tensor: Any, place: str) -> np.ndarray[Any, Any] | None:
        """Map the data of a tensor.

        Returns
        -------
        numpy.ndarray or None
            Read-only; None for element types that NumPy cannot represent.

        Raises
        ------
        FormatError
            The location is not allowed, or the file is shorter than the tensor.
        """
        data, offset, _ = self._span(tensor, place)
        if tensor.data_type not in ELEMENT_TYPES:
            return None
        dtype = dtypes.as_dtype(ELEMENT_TYPES[tensor.data_type])
        shape = tuple(tensor.dims)
        return np.frombuffer(memoryview(data), dtype, math.prod(shape), offset).reshape(shape)

    def content(self, tensor: Any, place: str) -> bytes:
        """Read the data of a tensor of any type; raises the errors of `array`."""
        data, offset, end = self._span(tensor, place)
        return data[offset:end]

    def _span(self, tensor: Any, place: str) -> tuple[_core.FileMapping | bytes, int, int]:
        """Return the mapped file of a tensor, and where its data starts and ends there."""
        location, offset, length = location_of(tensor, place)
        _, data = self.file(location, place)
        end = len(data) if length is None else offset + length
        if offset > end or end > len(data):
            raise FormatError(
                f"{place}: external data from byte {offset} to {end}, but {location!r} has "
                f"{len(data)} bytes"
            )
        count = element_count(list(tensor.dims), place)
        name = ELEMENT_TYPES.get(tensor.data_type)
        if name is None:
            return data, offset, end
        size = count * dtypes.as_dtype(name).itemsize
        if end - offset != size and (length is not None or end - offset < size):
            raise FormatError(
                f"{place}: {end - offset} bytes of external data, but dimensions "
                f"{list(tensor.dims)} of {name} take {size}"
            )
        return data, offset, offset + size


def _mapped(path: Path) -> _core.FileMapping | bytes:
    with open_regular(path) as opened:
        size = os.fstat(opened.fileno()).st_size
        return _core.FileMapping(opened.fileno(), str(path)) if size else b""
