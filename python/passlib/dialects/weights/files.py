"""Weight files of every format, read and written as plain arrays by name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from passlib.arrays import dtypes
from passlib.arrays.sparse_array import Array
from passlib.dialects.json_text import parse
from passlib.dialects.weights import params
from passlib.dialects.weights.npz import ZIP_MAGIC, write_npz
from passlib.dialects.weights.params import LIST_MAGIC, read_list, write_list
from passlib.errors import FormatError, UnsupportedError, listed
from passlib.files.optional import require
from passlib.files.regular import memory_named, open_regular
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

    ``path``: the file of ``source``. Raises `FormatError` if the header is damaged; `PasslibError`
    if the package ``safetensors`` is not installed; `UnsupportedError` for an element type that
    MXNet lacks.
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


def is_archive(path: Path) -> bool:
    """Whether a weight file is an .npz archive, as MXNet 2.0 writes, whatever its name."""
    with open_regular(path) as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def bytes_left(path: Path) -> int:
    """Return how many bytes a list of arrays of MXNet has after its end; 0 for other formats.

    Raises `FormatError` if the file is damaged; `OSError` if the file cannot be read.
    """
    source = Source.open(path)
    with memory_named(path):
        if bytes(source.data[:8]) != LIST_MAGIC.to_bytes(8, "little"):
            return 0
        *_, end = read_list(source)
    return source.size - end


def load_parts(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read named arrays; the content of the file determines the format.

    Raises `FormatError` if the file is damaged, of no known format, or has no names; `PasslibError`
    for a .safetensors file if the package ``safetensors`` is not installed; `OSError` if the file
    cannot be read.
    """
    source = Source.open(path)
    content: dict[str, Array] | list[Array]
    with memory_named(path):
        if is_safetensors(source):
            content = read_safetensors(source, path)
        else:
            content = params.read_source(source)
    if isinstance(content, list):
        if content:
            raise FormatError(
                f"{source.name}: the {len(content)} arrays in it have no names; "
                "read it with passlib.nd.load"
            )
        return {}
    return content


def write_parts(path: Path, arrays: Mapping[str, Array], *, archive: bool) -> None:
    """Write named arrays as a .params file, or as the .npz archive of MXNet 2.0."""
    if archive:
        write_npz(path, arrays)
    else:
        write_list(path, list(arrays.values()), list(arrays))


def warn_of_weights(main: Path, left: Iterable[Path]) -> None:
    """Warn of weight files that somebody else wrote beside a model, which has no weights."""
    names = [path.name for path in left]
    if names:
        warnings.warn(
            f"{main}: the model has no weights, but loading it will take those of "
            f"{listed(names)}; delete them or save under another name",
            stacklevel=5,
        )
