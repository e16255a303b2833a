"""Dictionaries of weights in files, of whichever format."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib import dtypes
from passlib._atomic import replacing
from passlib._optional import require
from passlib._source import Source
from passlib.dialects.mxnet import params
from passlib.dialects.mxnet.npz_writer import write_npz
from passlib.dialects.mxnet.params_writer import write_list
from passlib.dialects.mxnet.storage import Array, Sparse
from passlib.errors import FormatError, UnsupportedError
from passlib.nd.files import AnyArray, from_parts, to_parts

__all__ = ["load_weights", "save_weights"]

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


def load_weights(path: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Read named arrays from a .params, .npz or .safetensors file.

    Parameters
    ----------
    path : path-like
        The content decides, not the suffix.

    Returns
    -------
    dict of str to array
        Files of 1 MB or more are mapped, not read; writing to an array does not change them.

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
    return {name: from_parts(parts) for name, parts in content.items()}


def save_weights(path: str | os.PathLike[str], mapping: Mapping[str, Any]) -> None:
    """Write named arrays in the format that the suffix says; all or nothing.

    Parameters
    ----------
    path : path-like
        Ending in ``.params``, ``.npz`` or ``.safetensors``.
    mapping : mapping of str to array

    Raises
    ------
    ValueError
        The suffix is none of these.
    UnsupportedError
        The format has no place for one of the arrays.
    PasslibError
        ``.safetensors`` is asked for, and the package ``safetensors`` is not installed.
    """
    arrays = {name: to_parts(array) for name, array in mapping.items()}
    suffix = Path(path).suffix
    if suffix == ".params":
        write_list(path, list(arrays.values()), list(arrays))
    elif suffix == ".npz":
        write_npz(path, arrays)
    elif suffix == ".safetensors":
        _write_safetensors(path, arrays)
    else:
        raise ValueError(
            f"{os.fspath(path)!r} does not say the format; end it in .params, .npz or .safetensors"
        )


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


def _write_safetensors(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    writer = require("safetensors.numpy", extra="safetensors")
    plain: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        if isinstance(array, Sparse):
            raise UnsupportedError(
                f"array {name!r} is {array.stype}, and .safetensors holds dense arrays only; "
                "convert it with tostype('default') or save as .params"
            )
        try:
            dtypes.code(array.dtype)
        except UnsupportedError as error:
            raise UnsupportedError(f"array {name!r}: {error}") from error
        # The package writes the memory as it lies, whatever the strides.
        plain[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    with replacing(path) as temporary:
        writer.save_file(plain, temporary)
