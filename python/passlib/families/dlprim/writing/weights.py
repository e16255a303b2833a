"""Writing weight files, .dlp and .h5, and all files of a model, both or neither."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from passlib.dialects.weights.files import warn_of_weights
from passlib.errors import UnsupportedError
from passlib.families.dlprim.network import (
    DLP_LENGTH_BYTES,
    DLP_LONGEST_HEADER,
    DLP_MAGIC,
    NETWORK_SUFFIX,
    WEIGHT_SUFFIXES,
    DlpEntry,
    DlpHeader,
    Spec,
    WeightFile,
    file_name,
)
from passlib.files.optional import require
from passlib.files.regular import Save, is_own


def write_dlp(
    path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], header: DlpHeader | None
) -> None:
    """Write a .dlp file, with the header of the file that was read if it still fits.

    Raises `UnsupportedError` if the format lacks an element type.
    """
    specs = {name: Spec(array.dtype.name, array.shape) for name, array in arrays.items()}
    if header is None or not _fits(header, specs):
        header = _new_header(arrays, specs)
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


def _new_header(arrays: Mapping[str, np.ndarray[Any, Any]], specs: Mapping[str, Spec]) -> DlpHeader:
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


def write_h5(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write a .h5 file.

    Raises `UnsupportedError` if an array is not float32, the only type that DLPrimitives reads from
    HDF5, or has a name that HDF5 cannot hold; `PasslibError` if the package h5py is not installed.
    """
    h5py: Any = require("h5py", extra="h5")
    for name, array in arrays.items():
        if array.dtype != np.float32:
            found = Spec(array.dtype.name, array.shape)
            raise UnsupportedError(
                f"parameter {name!r} is {found}, but .h5 files of DLPrimitives hold only float32: "
                "save with weights='dlp'"
            )
    with h5py.File(os.fspath(path), "w") as file:
        for name, array in arrays.items():
            _add(file, name, np.ascontiguousarray(array))


def _add(file: Any, name: str, array: np.ndarray[Any, Any]) -> None:
    """Add a dataset. HDF5 takes names as paths: it rejects some and normalises others."""
    try:
        dataset = file.create_dataset(name, data=array, dtype="<f4")
        if dataset.name == f"/{name}":
            return
        reason = f"it would be called {dataset.name!r}"
    except (ValueError, TypeError, RuntimeError, KeyError) as error:
        reason = str(error)
    raise UnsupportedError(
        f"parameter {name!r}: a .h5 file cannot hold this name ({reason}): save with weights='dlp'"
    )


def write_files(
    path: Path, network: bytes, arrays: Mapping[str, Any], weights: WeightFile
) -> tuple[str, ...]:
    """Write network and weights, if there are any, both or neither; return their paths.

    Raises `UnsupportedError` if the format of the weight file cannot hold an array;
    `FileExistsError` if reading would take another weight file, which passlib did not write.
    """
    name = path if path.suffix == NETWORK_SUFFIX else path.with_name(path.name + NETWORK_SUFFIX)
    target = name.with_suffix(weights.suffix)
    others = [name.with_suffix(suffix) for suffix in WEIGHT_SUFFIXES if suffix != target.suffix]
    first = takewhile(lambda suffix: suffix != target.suffix, WEIGHT_SUFFIXES) if arrays else ()
    for other in map(name.with_suffix, first):
        if other.exists() and not is_own(other, name):
            what = "loading would take its weights; delete it, or save under another name"
            raise FileExistsError(errno.EEXIST, what, str(other))
    with Save(name, bound=True) as save:
        save.replace(name).write_bytes(network)
        if arrays:
            _write_weights(save.replace(target), arrays, weights)
        # The replaced network had these weights, and reading would take them.
        for other in others if arrays else (target, *others):
            save.remove(other)
    if arrays:
        return os.fspath(name), os.fspath(target)
    warn_of_weights(name, [path for path in (target, *others) if path.exists()])
    return (os.fspath(name),)


def _write_weights(path: Path, arrays: Mapping[str, Any], weights: WeightFile) -> None:
    """Write a weight file, parameters in the order of the one that was read."""
    known = [name for name in weights.order if name in arrays]
    ordered = {name: arrays[name] for name in known}
    ordered.update({name: arrays[name] for name in arrays if name not in ordered})
    if weights.kind == "dlp":
        write_dlp(path, ordered, weights.header)
    else:
        write_h5(path, ordered)
