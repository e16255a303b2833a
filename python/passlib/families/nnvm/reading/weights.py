"""The weight file next to a graph: TVM's format or MXNet's.

TVM's files have names, then arrays, little-endian:

    u64 0xF7E58D4F05049CB7 | u64 0 | u64 n | n x (u64 length, bytes) | u64 n | n x array
    array: u64 0xDD5E40F096B4A13F | u64 0 | i32 device, i32 its number | i32 dimensions
           | u8 kind, u8 bits, u16 lanes | dimensions x i64 | i64 bytes | elements

Source: ``save_param_dict`` of TVM 0.5 to 0.18, and ``NDArray::Save``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects.weights import files
from passlib.dialects.weights.params import split_names
from passlib.errors import FormatError, UnsupportedError
from passlib.files.regular import memory_named, open_regular
from passlib.files.source import Source

LIST_MAGIC: Final = 0xF7E58D4F05049CB7
ARRAY_MAGIC: Final = 0xDD5E40F096B4A13F
KINDS: Final = {"i": 0, "u": 1, "f": 2}
"""Kinds of element types, by that of NumPy."""

BFLOAT_KIND: Final = 4
BOOL: Final = (1, 1)
"""Kind and bits of booleans."""

_MOST_DIMENSIONS: Final = 32


def is_params(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a parameter file of TVM."""
    with open_regular(path) as file:
        return file.read(8) == struct.pack("<Q", LIST_MAGIC)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.offset = 0

    def take(self, form: str, what: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        values = struct.unpack(form, self.source.slice(self.offset, size, what))
        self.offset += size
        return values


def read_params(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read named arrays of TVM; large files are mapped. Errors are those of `read_weights`."""
    return _read(Source.open(path))[0]


def _read(source: Source) -> tuple[dict[str, np.ndarray], int]:
    """Read named arrays, and return also where they end."""
    reader = _Reader(source)
    magic, _, count = reader.take("<QQQ", "the header")
    if magic != LIST_MAGIC:
        raise source.fail(0, "this is no parameter file of TVM")
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
        if b"\0" in raw:
            raise source.fail(reader.offset, f"name {i} has a NUL character in it")
        reader.offset += length
    (arrays,) = reader.take("<Q", "the number of arrays")
    if arrays != count:
        raise source.fail(reader.offset - 8, f"there are {arrays} arrays for {count} names")
    content = {name: _read_array(reader, f"array {name!r}") for name in names}
    if len(content) < count:
        raise FormatError(f"{source.name}: two arrays have one name")
    return content, reader.offset


def _read_array(reader: _Reader, what: str) -> np.ndarray:
    source, start = reader.source, reader.offset
    magic, _, _, _, rank, kind, bits, lanes = reader.take("<QQiiiBBH", what)
    if magic != ARRAY_MAGIC:
        raise source.fail(start, f"{what} does not begin like one")
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
    if lanes == 1 and (kind, bits) == BOOL:
        return np.dtype(np.bool_)
    if lanes == 1 and kind == BFLOAT_KIND and bits == 16:
        return dtypes.as_dtype("bfloat16")
    if lanes == 1 and bits in (8, 16, 32, 64):
        for letter, number in KINDS.items():
            if number == kind and not (letter == "f" and bits == 8):
                return np.dtype(f"<{letter}{bits // 8}")
    raise UnsupportedError(f"{what} has elements of kind {kind}, {bits} bits, {lanes} lanes")


WEIGHTS_SUFFIX: Final = ".params"
"""Suffix of the weight file next to ``name.json``."""


class Weights(NamedTuple):
    """The content of a weight file of TVM or MXNet, and the names in its order."""

    args: dict[str, Any]
    aux: dict[str, Any]
    names: tuple[str, ...]
    of_mxnet: bool


def weights_path(path: Path) -> Path | None:
    """Return the weight file next to a graph; None if there is none."""
    weights = path.with_suffix(WEIGHTS_SUFFIX)
    # Opening reports anything that is neither a file nor a folder.
    return weights if weights != path and weights.exists() and not weights.is_dir() else None


def read_weights(path: Path, states: Collection[str]) -> Weights:
    """Read a weight file of either format, of a graph with some auxiliary states.

    Raises `FormatError` if the file is damaged; `UnsupportedError` if NumPy lacks an element type.
    """
    auxiliary = frozenset(states)
    if is_params(path):
        with memory_named(path):
            named = read_params(path)
        args = {name: array for name, array in named.items() if name not in auxiliary}
        aux = {name: array for name, array in named.items() if name in auxiliary}
        return Weights(args, aux, tuple(named), of_mxnet=False)
    parts = files.load_parts(path)
    return Weights(*split_names(parts, str(path), auxiliary), tuple(parts), of_mxnet=True)


def bytes_left(path: Path) -> int:
    """Return how many bytes a weight file has after its arrays; errors are those of reading it."""
    if not is_params(path):
        return files.bytes_left(path)
    with memory_named(path):
        source = Source.open(path)
        return source.size - _read(source)[1]
