"""Arrays in files: written from file to file where they lie in a mapped one, and moved there."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import numpy as np

import passlib._core as _core

SMALL: Final = 1 << 16
"""Fewer bytes are written from memory."""

MOST_IN_MEMORY: Final = 1 << 27
"""New arrays of more bytes are moved to a temporary file."""

_BLOCK: Final = 4096
"""File systems share whole blocks."""


def write_array(file: BinaryIO, array: np.ndarray[Any, Any]) -> None:
    """Write the bytes of a contiguous array at the end of a file.

    File systems that can (Btrfs, XFS) share the blocks of a mapped file at the same alignment with
    the new one; others copy them without the memory of this process.
    """
    data = array.reshape(-1).view(np.uint8)
    place = _core.place_in_file(data) if data.nbytes >= SMALL else None
    copied = 0
    if place is not None and hasattr(os, "copy_file_range"):
        file.flush()
        copied = _copied(*place, data.nbytes, file)
    file.write(data[copied:].data)


def in_temporary_file(arrays: Iterable[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return read-only arrays with the elements of others, in a file that lives as long as they do.

    Raises `OSError` if there is no room for it.
    """
    with tempfile.TemporaryFile() as file:
        places = []
        for array in arrays:  # which may be made one after the other
            file.write(bytes(-file.tell() % _BLOCK))
            places.append((file.tell(), array.dtype, array.shape))
            write_array(file, np.ascontiguousarray(array))
        file.flush()
        content = memoryview(_core.FileMapping(file.fileno(), "a temporary file"))
    return [
        np.frombuffer(content, dtype, math.prod(shape), offset).reshape(shape)
        for offset, dtype, shape in places
    ]


def _copied(source: int, offset: int, size: int, file: BinaryIO) -> int:
    """Copy bytes of a file to the end of another; return how many, which may be fewer."""
    start, copied = file.tell(), 0
    shareable = size - size % _BLOCK  # a range that ends within a block is not shared at all
    try:
        while copied < size:
            most = (shareable if copied < shareable else size) - copied
            made = os.copy_file_range(source, file.fileno(), most, offset + copied, start + copied)
            if not made:
                break
            copied += made
    except OSError:  # other file systems or old kernels; a full disk shows when the rest is written
        pass
    file.seek(start + copied)
    return copied
