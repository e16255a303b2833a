"""Weights as TVM saves them: names, then arrays, little-endian.

    u64 0xF7E58D4F05049CB7 | u64 0 | u64 n | n x (u64 length, bytes) | u64 n | n x array
    array: u64 0xDD5E40F096B4A13F | u64 0 | i32 device, i32 its number | i32 dimensions
           | u8 kind, u8 bits, u16 lanes | dimensions x i64 | i64 bytes | elements

Source: ``save_param_dict`` of TVM 0.5 to 0.18, and ``NDArray::Save``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.arrays import dtypes
from passlib.errors import FormatError, UnsupportedError
from passlib.files.source import Source

__all__ = ["is_params", "read", "write"]

_LIST: Final = 0xF7E58D4F05049CB7
_ARRAY: Final = 0xDD5E40F096B4A13F
_CPU: Final = 1
_KINDS: Final = {"i": 0, "u": 1, "f": 2}
_BFLOAT: Final = 4
_BOOL: Final = (1, 1)
_MOST_DIMENSIONS: Final = 32


def is_params(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as these do."""
    with Path(path).open("rb") as file:
        return file.read(8) == struct.pack("<Q", _LIST)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.offset = 0

    def take(self, form: str, what: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        values = struct.unpack(form, self.source.slice(self.offset, size, what))
        self.offset += size
        return values


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read named arrays; large files are mapped.

    Raises
    ------
    FormatError
        The file is damaged; the message has the offset.
    UnsupportedError
        An element type that NumPy lacks.
    """
    reader = _Reader(Source.open(path))
    source = reader.source
    magic, _, count = reader.take("<QQQ", "the header")
    if magic != _LIST:
        raise source.fail(0, "this is no file of parameters of TVM")
    if count > source.size // 8:
        raise source.fail(16, f"the file cannot hold {count} names")
    names = []
    for i in range(count):
        (length,) = reader.take("<Q", f"length of name {i}")
        raw = source.slice(reader.offset, length, f"name {i}")
        try:
            names.append(raw.decode())
        except UnicodeDecodeError as error:
            raise source.fail(reader.offset, f"name {i} is not UTF-8") from error
        reader.offset += length
    (arrays,) = reader.take("<Q", "the number of arrays")
    if arrays != count:
        raise source.fail(reader.offset - 8, f"there are {arrays} arrays for {count} names")
    content = {name: _read_array(reader, f"array {name!r}") for name in names}
    if len(content) < count:
        raise FormatError(f"{source.name}: two arrays have one name")
    return content


def _read_array(reader: _Reader, what: str) -> np.ndarray:
    source, start = reader.source, reader.offset
    magic, _, _, _, rank, kind, bits, lanes = reader.take("<QQiiiBBH", what)
    if magic != _ARRAY:
        raise source.fail(start, f"{what} does not begin as one")
    if not 0 <= rank <= _MOST_DIMENSIONS:
        raise source.fail(start, f"{what} has {rank} dimensions")
    shape = reader.take(f"<{rank}q", f"shape of {what}")
    (size,) = reader.take("<q", f"size of {what}")
    dtype = _dtype(kind, bits, lanes, what)
    array = source.array(reader.offset, dtype, shape, what)
    if size != array.size * dtype.itemsize:
        raise source.fail(reader.offset - 8, f"{what} has {size} bytes for the shape {shape}")
    reader.offset += size
    return array


def _dtype(kind: int, bits: int, lanes: int, what: str) -> np.dtype:
    if lanes == 1 and (kind, bits) == _BOOL:
        return np.dtype(np.bool_)
    if lanes == 1 and kind == _BFLOAT and bits == 16:
        return dtypes.as_dtype("bfloat16")
    if lanes == 1 and bits in (8, 16, 32, 64):
        for letter, number in _KINDS.items():
            if number == kind and not (letter == "f" and bits == 8):
                return np.dtype(f"<{letter}{bits // 8}")
    raise UnsupportedError(f"{what} has elements of kind {kind}, {bits} bits, {lanes} lanes")


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays.

    Raises
    ------
    UnsupportedError
        An array is sparse, or of an element type that TVM lacks.
    """
    headers = {name: _header(name, array) for name, array in arrays.items()}
    with path.open("wb") as file:
        file.write(struct.pack("<QQQ", _LIST, 0, len(headers)))
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
        raise UnsupportedError(f"array {name!r} is sparse, which parameters of TVM cannot be")
    dtype = array.dtype
    if dtype == np.bool_:
        kind = _BOOL
    elif dtype.name == "bfloat16":
        kind = (_BFLOAT, 16)
    elif dtype.kind in _KINDS and dtype.itemsize <= 8:
        kind = (_KINDS[dtype.kind], dtype.itemsize * 8)
    else:
        raise UnsupportedError(f"array {name!r} is of type {dtype}, which TVM lacks")
    sizes = struct.pack(f"<{array.ndim}qq", *array.shape, array.nbytes)
    return struct.pack("<QQiiiBBH", _ARRAY, 0, _CPU, 0, array.ndim, *kind, 1) + sizes
