"""Weight files of every format, read and written as plain arrays by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from passlib.arrays.sparse_array import Array
from passlib.dialects.weights import params
from passlib.dialects.weights.npz import ZIP_MAGIC, write_npz
from passlib.dialects.weights.params import LIST_MAGIC, read_list, write_list
from passlib.dialects.weights.safetensors import is_safetensors, read_safetensors
from passlib.errors import FormatError
from passlib.files.regular import memory_named, open_regular
from passlib.files.source import Source


def is_archive(path: Path) -> bool:
    """Whether a weight file is an .npz archive, as MXNet 2.0 writes, whatever its name."""
    with open_regular(path) as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def bytes_left(path: Path) -> int:
    """Return how many bytes a list of arrays of MXNet has after its end; 0 for other formats.

    Raises
    ------
    FormatError
        The file is damaged.
    OSError
        The file cannot be read.
    """
    source = Source.open(path)
    with memory_named(path):
        if bytes(source.data[:8]) != LIST_MAGIC.to_bytes(8, "little"):
            return 0
        *_, end = read_list(source)
    return source.size - end


def load_parts(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read named arrays; the content of the file determines the format.

    Raises
    ------
    FormatError
        The file is damaged, of no known format, or has no names.
    PasslibError
        A .safetensors file, and the package ``safetensors`` is not installed.
    OSError
        The file cannot be read.
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
