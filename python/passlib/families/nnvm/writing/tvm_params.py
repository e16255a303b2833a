"""Writer of TVM's parameter files.

The layout is described in `passlib.families.nnvm.reading.tvm_params`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import UnsupportedError
from passlib.families.nnvm.reading.tvm_params import (
    ARRAY_MAGIC,
    BFLOAT_KIND,
    BOOL,
    KINDS,
    LIST_MAGIC,
)

_CPU: Final = 1


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays.

    Raises
    ------
    UnsupportedError
        An array is sparse, or has an element type that TVM lacks.
    """
    headers = {name: _header(name, array) for name, array in arrays.items()}
    with path.open("wb") as file:
        file.write(struct.pack("<QQQ", LIST_MAGIC, 0, len(headers)))
        for name in headers:
            encoded = name.encode()
            file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.write(struct.pack("<Q", len(headers)))
        for name, header in headers.items():
            file.write(header)
            array = arrays[name]
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def _header(name: str, array: Any) -> bytes:
    if not isinstance(array, np.ndarray):
        raise UnsupportedError(f"array {name!r} is sparse, but TVM has dense parameters only")
    dtype = array.dtype
    if dtype == np.bool_:
        kind = BOOL
    elif dtype.name == "bfloat16":
        kind = (BFLOAT_KIND, 16)
    elif dtype.kind in KINDS and dtype.itemsize <= 8:
        kind = (KINDS[dtype.kind], dtype.itemsize * 8)
    else:
        raise UnsupportedError(f"array {name!r} is of type {dtype}, which TVM lacks")
    sizes = struct.pack(f"<{array.ndim}qq", *array.shape, array.nbytes)
    return struct.pack("<QQiiiBBH", ARRAY_MAGIC, 0, _CPU, 0, array.ndim, *kind, 1) + sizes
