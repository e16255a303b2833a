"""Bounds-checked access to the bytes of a file, for arrays that are views of them."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np

import passlib._core as _core
from passlib.errors import FormatError
from passlib.files.regular import memory_named, open_regular

MAP_FROM: Final = 1 << 20
"""Files of at least this many bytes are mapped; smaller ones are read and closed."""

_MAX_DIMENSIONS: Final = 32  # NumPy 1.x allows no more
_MAX_BYTES: Final = 2**63 - 1


class Source:
    """The content of one file or buffer.

    ``data`` is writable; arrays that are views of it keep it alive. ``name`` is the file, for
    messages; ``path`` the one that the bytes are mapped from.
    """

    def __init__(
        self, data: _core.FileMapping | bytearray, name: str, path: Path | None = None
    ) -> None:
        self.data = data
        self.name = name
        self.size = len(data)
        self._path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Source:
        """Read a small file, or map a large one.

        The mapping is private: writing to an array changes neither the file nor other mappings, and
        takes memory only for the modified pages. Raises `FormatError` if there is no regular file
        at the path, or no memory for it; `OSError` if the file cannot be read.
        """
        location = Path(path)
        with open_regular(location) as file, memory_named(location):
            if os.fstat(file.fileno()).st_size < MAP_FROM:
                return cls(bytearray(file.read()), str(location))
            mapping = _core.FileMapping(
                file.fileno(), os.fsencode(location.absolute()), is_private=True
            )
        return cls(mapping, str(location), location)

    @property
    def mapped(self) -> bool:
        """Whether the bytes are mapped, so that they are read from disk on first access."""
        return self._path is not None

    def file(self) -> BinaryIO:
        """Open the same bytes as a seekable binary file, which the caller closes."""
        return io.BytesIO(self.data) if self._path is None else open_regular(self._path)

    def fail(self, offset: int, what: str) -> FormatError:
        """Return the error for a fault at a byte offset of the file."""
        return FormatError(f"{self.name}: at byte {offset}: {what}", offset=offset)

    def slice(self, offset: int, count: int, what: str) -> bytes:
        """Return a copy of ``count`` bytes, which ``what`` describes in messages.

        Raises `FormatError` if the file ends before their end.
        """
        self._require(offset, count, what)
        return bytes(self.data[offset : offset + count])

    def array(
        self,
        offset: int,
        dtype: np.dtype[Any],
        shape: Sequence[int],
        what: str,
        order: Literal["C", "F"] = "C",
    ) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the elements at a byte offset as a writable, aligned array, in C or Fortran order.

        The array is a view if the offset is aligned for the type, else a copy: passes get the
        pointer, and C++ must not read through an unaligned one. Raises `FormatError` if the shape
        is impossible, or the file ends before the last element; ``what`` describes the elements in
        messages.
        """
        if len(shape) > _MAX_DIMENSIONS:
            raise self.fail(offset, f"{what} has {len(shape)} dimensions, over {_MAX_DIMENSIONS}")
        if any(size < 0 for size in shape):
            raise self.fail(offset, f"{what} has a negative dimension in its shape {tuple(shape)}")
        # NumPy refuses such shapes even where another dimension is 0.
        if math.prod(size for size in shape if size) * dtype.itemsize > _MAX_BYTES:
            raise self.fail(offset, f"{what} has the shape {tuple(shape)}, beyond 64 bits")
        count = math.prod(shape)
        self._require(offset, count * dtype.itemsize, f"{what} of shape {tuple(shape)}")
        if not count:
            return np.empty(shape, dtype, order)
        flat = np.frombuffer(memoryview(self.data), dtype, count, offset)
        if not flat.flags.aligned:
            flat = flat.copy()
        return flat.reshape(shape, order=order)

    def _require(self, offset: int, count: int, what: str) -> None:
        left = self.size - offset
        if offset < 0 or count > left:
            raise self.fail(
                offset,
                f"{what} needs {count} bytes, but the file has {max(left, 0)} more; it is "
                "truncated or damaged",
            )
