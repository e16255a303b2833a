"""Files of weights, .dlp: a JSON table of tensors, then their elements.

The file begins with ``DLPW`` and the length of the table as four bytes, the highest first. The
table is ``{"tensors": {name: {"dtype", "shape", "start", "size"}}}``, with bytes counted from its
end; elements are little-endian.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.dialects.dlprim.types import NAMES, Spec, file_name, numpy_type
from passlib.dialects.json_text import JsonObject, parse
from passlib.errors import FormatError, UnsupportedError

__all__ = ["MAGIC", "Entry", "Header", "read", "write"]

MAGIC: Final = b"DLPW"
_TYPES: Final = {**NAMES, "double": "float64", "uint32": "uint32"}
"""What a table may hold: no network needs the last two, but the original can print them."""

_LENGTH_BYTES: Final = 4
_LONGEST_HEADER: Final = 64 << 20


@dataclass(frozen=True)
class Entry:
    """Where a tensor stands."""

    spec: Spec
    start: int
    size: int


@dataclass(frozen=True)
class Header:
    """A table as it stands in a file.

    Attributes
    ----------
    text : bytes
    entries : mapping of str to Entry
    """

    text: bytes
    entries: Mapping[str, Entry]


def read(path: Path) -> tuple[dict[str, np.ndarray[Any, Any]], Header]:
    """Read a .dlp file.

    Returns
    -------
    arrays : dict of str to numpy.ndarray
        In the order of the table.
    header : Header

    Raises
    ------
    FormatError
        The file is damaged.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        begin = file.read(len(MAGIC) + _LENGTH_BYTES)
        length = int.from_bytes(begin[len(MAGIC) :], "big")
        left = size - len(begin) - length
        if len(begin) < len(MAGIC) + _LENGTH_BYTES or not begin.startswith(MAGIC):
            raise FormatError(f"{path}: does not begin with DLPW and the length of its table")
        if length > _LONGEST_HEADER or left < 0:
            raise FormatError(f"{path}: a table of {length} bytes does not fit", offset=4)
        text = file.read(length)
        entries = _entries(path, text, left)
        arrays = {}
        for name, entry in entries.items():
            file.seek(len(begin) + length + entry.start)
            arrays[name] = _array(file.read(entry.size), entry.spec)
    return arrays, Header(text, entries)


def write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], header: Header | None) -> None:
    """Write a .dlp file.

    Parameters
    ----------
    path : Path
    arrays : mapping of str to numpy.ndarray
    header : Header, optional
        The table of the file that was read; written again as it was if it still holds.

    Raises
    ------
    UnsupportedError
        The format has no such element type.
    """
    specs = {name: Spec(array.dtype.name, array.shape) for name, array in arrays.items()}
    if header is None or not _holds(header, specs):
        header = _header(arrays, specs)
    with path.open("wb") as file:
        file.write(MAGIC + len(header.text).to_bytes(_LENGTH_BYTES, "big") + header.text)
        begin = file.tell()
        for name, entry in header.entries.items():
            file.seek(begin + entry.start)
            array = np.ascontiguousarray(arrays[name])
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def _holds(header: Header, specs: Mapping[str, Spec]) -> bool:
    """Whether a table has a place of its own for each tensor: files may let tensors overlap."""
    if {name: entry.spec for name, entry in header.entries.items()} != specs:
        return False
    end = 0
    for entry in sorted(header.entries.values(), key=lambda entry: (entry.start, entry.size)):
        if entry.start < end:
            return False
        end = entry.start + entry.size
    return True


def _header(arrays: Mapping[str, np.ndarray[Any, Any]], specs: Mapping[str, Spec]) -> Header:
    entries: dict[str, Entry] = {}
    table: dict[str, dict[str, Any]] = {}
    start = 0
    for name, spec in specs.items():
        dtype = file_name(spec.dtype)
        if dtype is None:
            raise UnsupportedError(f"parameter {name!r}: a .dlp file has no type {spec.dtype}")
        size = arrays[name].nbytes
        entries[name] = Entry(spec, start, size)
        table[name] = {"dtype": dtype, "shape": list(spec.shape), "size": size, "start": start}
        start += size
    text = json.dumps({"tensors": table}, ensure_ascii=False).encode()
    if len(text) > _LONGEST_HEADER:
        raise UnsupportedError(f"a .dlp file has no room for the names of {len(specs)} parameters")
    return Header(text, entries)


def _entries(path: Path, text: bytes, left: int) -> dict[str, Entry]:
    try:
        root = parse(text, comments=True)
    except FormatError as error:
        raise FormatError(f"{path}: the table is no JSON: {error}", offset=error.offset) from error
    tensors = root.get("tensors") if isinstance(root, JsonObject) else None
    if not isinstance(tensors, JsonObject):
        raise FormatError(f"{path}: the table has no object 'tensors'")
    entries = {name: _entry(path, name, json, left) for name, json in tensors.items()}
    if sum(entry.size for entry in entries.values()) > left:
        raise FormatError(f"{path}: the tensors have more bytes than the file")
    return entries


def _entry(path: Path, name: str, table: Any, left: int) -> Entry:
    where = f"{path}: tensors[{name!r}]"
    if not isinstance(table, JsonObject):
        raise FormatError(f"{where} is no object")
    dtype = table.get("dtype")
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise FormatError(f"{where}.dtype is {dtype!r}, none of {', '.join(_TYPES)}")
    shape = table.get("shape", [])
    if not isinstance(shape, list) or not all(_is_count(item) for item in shape):
        raise FormatError(f"{where}.shape is no list of sizes")
    if not _is_count(table.get("start")) or not _is_count(table.get("size")):
        raise FormatError(f"{where}: start and size must be whole numbers")
    start, size = int(table["start"]), int(table["size"])
    spec = Spec(_TYPES[dtype], tuple(int(item) for item in shape))
    if start + size > left:
        raise FormatError(f"{where} ends at byte {start + size} of {left}")
    if size != math.prod(spec.shape) * numpy_type(spec.dtype).itemsize:
        raise FormatError(f"{where}: {spec} does not have {size} bytes")
    return Entry(spec, start, size)


def _is_count(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < 2.0**62 and value == int(value)


def _array(content: bytes, spec: Spec) -> np.ndarray[Any, Any]:
    dtype = numpy_type(spec.dtype)
    flat = np.frombuffer(content, dtype.newbyteorder("<"))
    # In memory of its own, where NumPy aligns it.
    return flat.astype(dtype).reshape(spec.shape)
