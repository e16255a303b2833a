"""Reader of .safetensors files; arrays are views on the file."""

from __future__ import annotations

import os
from typing import Final

from passlib.arrays import dtypes
from passlib.arrays.sparse_array import Array
from passlib.dialects.json_text import parse
from passlib.errors import FormatError, UnsupportedError
from passlib.files.optional import require
from passlib.files.source import Source

_TYPES: Final = {
    "F32": "float32",
    "F64": "float64",
    "F16": "float16",
    "BF16": "bfloat16",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "BOOL": "bool",
}
_LENGTH_BYTES: Final = 8


def is_safetensors(source: Source) -> bool:
    """Recognise a file by the length of its header and the opening brace."""
    start = bytes(source.data[: _LENGTH_BYTES + 1])
    length = int.from_bytes(start[:_LENGTH_BYTES], "little")
    return start[_LENGTH_BYTES:] == b"{" and length <= source.size - _LENGTH_BYTES


def read_safetensors(source: Source, path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read all arrays.

    Parameters
    ----------
    source : Source
    path : path-like
        The file of ``source``.

    Raises
    ------
    FormatError
        The header is damaged.
    PasslibError
        The package ``safetensors`` is not installed.
    UnsupportedError
        An element type that MXNet lacks.
    """
    safetensors = require("safetensors", extra="safetensors")
    try:
        # The package checks the whole header: offsets in order, no gaps, no overlaps.
        with safetensors.safe_open(os.fspath(path), framework="np"):
            pass
    except safetensors.SafetensorError as error:
        raise FormatError(f"{source.name}: the .safetensors header is damaged: {error}") from error
    length = int.from_bytes(source.data[:_LENGTH_BYTES], "little")
    try:
        header = parse(source.slice(_LENGTH_BYTES, length, "the header"))
    except FormatError as error:
        raise error.within(f"{source.name}: the .safetensors header") from error
    arrays: dict[str, Array] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if "\0" in name:
            raise FormatError(f"{source.name}: the name {name!r} has a NUL character in it")
        kind = _TYPES.get(entry["dtype"])
        if kind is None:
            raise UnsupportedError(
                f"{source.name}: array {name!r} has the type {entry['dtype']}, which MXNet lacks"
            )
        offset = _LENGTH_BYTES + length + entry["data_offsets"][0]
        arrays[name] = source.array(
            offset, dtypes.as_dtype(kind), entry["shape"], f"array {name!r}"
        )
    return arrays
