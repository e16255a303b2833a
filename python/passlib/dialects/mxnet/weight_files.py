"""Weight files, read and written as plain arrays: .params, .npz and .safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from passlib.arrays import dtypes
from passlib.arrays.storage import Array
from passlib.dialects.mxnet import params
from passlib.dialects.mxnet.npz_writer import write_npz
from passlib.dialects.mxnet.params_writer import write_list
from passlib.errors import FormatError, UnsupportedError
from passlib.files.atomic import replacing
from passlib.files.optional import require
from passlib.files.source import Source

__all__ = ["load_parts", "write_model", "write_parts"]

_SAFETENSORS_TYPES: Final = {
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


def load_parts(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read named arrays; the content of the file decides on the format.

    Raises
    ------
    FormatError
        Damaged, of no known format, or without names.
    PasslibError
        A .safetensors file, and the package ``safetensors`` is not installed.
    OSError
        The file cannot be read.
    """
    source = Source.open(path)
    content: dict[str, Array] | list[Array]
    if _is_safetensors(source):
        content = _read_safetensors(source, path)
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


def write_model(
    symbol_path: Path,
    text: str,
    params_path: Path | None,
    arrays: Mapping[str, Array],
    *,
    archive: bool = False,
) -> None:
    """Write the two files of a model; what fails leaves both as they were.

    Parameters
    ----------
    symbol_path : Path
    text : str
    params_path : Path or None
        None writes no weights.
    arrays : mapping of str to array
        Names with ``arg:`` and ``aux:``.
    archive : bool
        Write the weights as the .npz of MXNet 2.0.
    """
    with ExitStack() as stack:
        # Both are complete before the first is renamed, at the end of the block.
        temporary = stack.enter_context(replacing(symbol_path))
        temporary.write_text(text, "utf-8", newline="")
        if params_path is not None:
            write_parts(stack.enter_context(replacing(params_path)), arrays, archive=archive)


def _is_safetensors(source: Source) -> bool:
    """Tell by the length of the header and its opening brace."""
    start = bytes(source.data[: _LENGTH_BYTES + 1])
    length = int.from_bytes(start[:_LENGTH_BYTES], "little")
    return start[_LENGTH_BYTES:] == b"{" and length <= source.size - _LENGTH_BYTES


def _read_safetensors(source: Source, path: str | os.PathLike[str]) -> dict[str, Array]:
    safetensors = require("safetensors", extra="safetensors")
    try:
        # The package checks the whole header: offsets in order, no gaps, no overlaps.
        with safetensors.safe_open(os.fspath(path), framework="np"):
            pass
    except safetensors.SafetensorError as error:
        raise FormatError(f"{source.name}: the .safetensors header is damaged: {error}") from error
    length = int.from_bytes(source.data[:_LENGTH_BYTES], "little")
    header = json.loads(source.slice(_LENGTH_BYTES, length, "the header"))
    arrays: dict[str, Array] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        kind = _SAFETENSORS_TYPES.get(entry["dtype"])
        if kind is None:
            raise UnsupportedError(
                f"{source.name}: array {name!r} has the type {entry['dtype']}, which MXNet lacks"
            )
        offset = _LENGTH_BYTES + length + entry["data_offsets"][0]
        arrays[name] = source.array(
            offset, dtypes.as_dtype(kind), entry["shape"], f"array {name!r}"
        )
    return arrays
