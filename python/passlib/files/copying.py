"""Large new arrays, which are moved to temporary files."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

import passlib._core as _core

MOST_IN_MEMORY: Final = 1 << 27
"""New arrays of more bytes are moved to a temporary file."""

_BLOCK: Final = 4096
"""The alignment of arrays in the file: file systems share whole blocks."""


def in_temporary_file(arrays: Iterable[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return read-only arrays with the elements of others, in a file that lives as long as they do.

    Raises `OSError` if there is no room for it.
    """
    with tempfile.TemporaryFile() as file:
        places = []
        for array in arrays:  # which may be made one after the other
            file.write(bytes(-file.tell() % _BLOCK))
            places.append((file.tell(), array.dtype, array.shape))
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.flush()
        content = memoryview(_core.FileMapping(file.fileno(), "a temporary file"))
    return [
        np.frombuffer(content, dtype, math.prod(shape), offset).reshape(shape)
        for offset, dtype, shape in places
    ]
