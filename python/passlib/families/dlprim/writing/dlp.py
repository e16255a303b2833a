"""Writing .dlp weight files. See `DlpHeader` for the layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from passlib.errors import UnsupportedError
from passlib.families.dlprim.network import (
    DLP_LENGTH_BYTES,
    DLP_LONGEST_HEADER,
    DLP_MAGIC,
    DlpEntry,
    DlpHeader,
    Spec,
    file_name,
)


def write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], header: DlpHeader | None) -> None:
    """Write a .dlp file.

    Raises `UnsupportedError` if the format lacks an element type.

    Parameters
    ----------
    header : DlpHeader, optional
        Of the file that was read; written unchanged if it still fits.
    """
    specs = {name: Spec(array.dtype.name, array.shape) for name, array in arrays.items()}
    if header is None or not _fits(header, specs):
        header = _header(arrays, specs)
    with path.open("wb") as file:
        file.write(DLP_MAGIC + len(header.text).to_bytes(DLP_LENGTH_BYTES, "big") + header.text)
        begin = file.tell()
        for name, entry in header.entries.items():
            file.seek(begin + entry.start)
            array = np.ascontiguousarray(arrays[name])
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def _fits(header: DlpHeader, specs: Mapping[str, Spec]) -> bool:
    """Whether a header has separate space for each tensor; tensors of a file may overlap."""
    if {name: entry.spec for name, entry in header.entries.items()} != specs:
        return False
    end = 0
    for entry in sorted(header.entries.values(), key=lambda entry: (entry.start, entry.size)):
        if entry.start < end:
            return False
        end = entry.start + entry.size
    return True


def _header(arrays: Mapping[str, np.ndarray[Any, Any]], specs: Mapping[str, Spec]) -> DlpHeader:
    entries: dict[str, DlpEntry] = {}
    table: dict[str, dict[str, Any]] = {}
    start = 0
    for name, spec in specs.items():
        dtype = file_name(spec.dtype)
        if dtype is None:
            raise UnsupportedError(f"parameter {name!r}: a .dlp file has no type {spec.dtype}")
        size = arrays[name].nbytes
        entries[name] = DlpEntry(spec, start, size)
        table[name] = {"dtype": dtype, "shape": list(spec.shape), "size": size, "start": start}
        start += size
    text = json.dumps({"tensors": table}, ensure_ascii=False).encode()
    if len(text) > DLP_LONGEST_HEADER:
        raise UnsupportedError(
            f"the names of {len(specs)} parameters do not fit into the header of a .dlp file"
        )
    return DlpHeader(text, entries)
