"""Reading .dlp weight files: a JSON header, then the elements. See `DlpHeader` for the layout."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib._core import JsonObject
from passlib.dialects.json_text import parse
from passlib.errors import FormatError
from passlib.families.dlprim.network import (
    DLP_LENGTH_BYTES,
    DLP_LONGEST_HEADER,
    DLP_MAGIC,
    NAMES,
    DlpEntry,
    DlpHeader,
    Spec,
    numpy_type,
)
from passlib.files.regular import memory_named, open_regular

_TYPES: Final = {**NAMES, "double": "float64", "uint32": "uint32"}
"""Element types in a header; no network uses the last two, but the original can write them."""


def read(path: Path) -> tuple[dict[str, np.ndarray[Any, Any]], DlpHeader]:
    """Read a .dlp file.

    Raises `FormatError` if the file is damaged.

    Returns
    -------
    arrays : dict of str to numpy.ndarray
        In the order of the header.
    """
    with open_regular(path) as file, memory_named(path):
        size = os.fstat(file.fileno()).st_size
        begin = file.read(len(DLP_MAGIC) + DLP_LENGTH_BYTES)
        length = int.from_bytes(begin[len(DLP_MAGIC) :], "big")
        left = size - len(begin) - length
        if len(begin) < len(DLP_MAGIC) + DLP_LENGTH_BYTES or not begin.startswith(DLP_MAGIC):
            raise FormatError(f"{path}: does not begin with DLPW and the length of its header")
        if length > DLP_LONGEST_HEADER or left < 0:
            raise FormatError(f"{path}: a header of {length} bytes does not fit", offset=4)
        text = file.read(length)
        entries = _entries(path, text, left)
        arrays = {}
        for name, entry in entries.items():
            file.seek(len(begin) + length + entry.start)
            arrays[name] = _array(file.read(entry.size), entry.spec)
    return arrays, DlpHeader(text, entries)


def _entries(path: Path, text: bytes, left: int) -> dict[str, DlpEntry]:
    try:
        root = parse(text, comments=True)
    except FormatError as error:
        raise error.within(f"{path}: the header is not JSON") from error
    tensors = root.get("tensors") if isinstance(root, JsonObject) else None
    if not isinstance(tensors, JsonObject):
        raise FormatError(f"{path}: the header has no object 'tensors'")
    entries = {name: _entry(path, name, json, left) for name, json in tensors.items()}
    if sum(entry.size for entry in entries.values()) > left:
        raise FormatError(f"{path}: the tensors have more bytes than the file")
    return entries


def _entry(path: Path, name: str, json: Any, left: int) -> DlpEntry:
    where = f"{path}: tensors[{name!r}]"
    if not isinstance(json, JsonObject):
        raise FormatError(f"{where} is not an object")
    dtype = json.get("dtype")
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise FormatError(f"{where}.dtype is {dtype!r}, not one of {', '.join(_TYPES)}")
    shape = json.get("shape", [])
    if not isinstance(shape, list) or not all(_is_count(item) for item in shape):
        raise FormatError(f"{where}.shape is not a list of sizes")
    if not _is_count(json.get("start")) or not _is_count(json.get("size")):
        raise FormatError(f"{where}: start and size must be integers, 0 or greater")
    start, size = int(json["start"]), int(json["size"])
    spec = Spec(_TYPES[dtype], tuple(int(item) for item in shape))
    if start + size > left:
        raise FormatError(f"{where} ends at byte {start + size} of {left}")
    if size != math.prod(spec.shape) * numpy_type(spec.dtype).itemsize:
        raise FormatError(f"{where}: {spec} does not have {size} bytes")
    return DlpEntry(spec, start, size)


def _is_count(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < 2.0**62 and value == int(value)


def _array(content: bytes, spec: Spec) -> np.ndarray[Any, Any]:
    dtype = numpy_type(spec.dtype)
    flat = np.frombuffer(content, dtype.newbyteorder("<"))
    # A copy, in memory that NumPy aligns.
    return flat.astype(dtype).reshape(spec.shape)
