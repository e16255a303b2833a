"""Files of weights, .h5: HDF5 with one dataset for each parameter, by its name at the root."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.dialects.dlprim.types import Spec
from passlib.errors import FormatError, UnsupportedError
from passlib.files.optional import require

__all__ = ["MAGIC", "read", "write"]

MAGIC: Final = b"\x89HDF"

_EXPANSION: Final = 1100
"""HDF5's compression cannot shrink more than this; what claims to is made to fill memory."""

_SMALL: Final = 1 << 20
_MOST_DATASETS: Final = 1 << 20


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read a .h5 file.

    Returns
    -------
    dict of str to numpy.ndarray
        Every dataset of numbers, as float32, in the order of their names.

    Raises
    ------
    FormatError
        The file is damaged.
    PasslibError
        The package h5py is not installed.
    """
    h5py: Any = require("h5py", extra="h5")
    limit = max(path.stat().st_size, _SMALL) * _EXPANSION
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    try:
        with h5py.File(path, "r") as file:
            for name, dataset in _datasets(h5py, file):
                if dataset.external or dataset.is_virtual:
                    # What a model's author can make it read is not all that its user can.
                    raise FormatError(f"{path}: dataset {name!r} has its elements in other files")
                if dataset.shape is None:
                    raise FormatError(f"{path}: dataset {name!r} has no elements and no shape")
                limit -= dataset.size * max(dataset.dtype.itemsize, 4)
                if limit < 0:
                    raise FormatError(f"{path}: dataset {name!r} is larger than the file can be")
                arrays[name] = np.asarray(dataset[()], np.float32)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise FormatError(f"{path}: HDF5 cannot read it: {error}") from error
    return arrays


def write(path: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write a .h5 file.

    Raises
    ------
    UnsupportedError
        An array is not of float32, which is all that DLPrimitives reads from HDF5, or has a name
        that HDF5 cannot hold.
    PasslibError
        The package h5py is not installed.
    """
    h5py: Any = require("h5py", extra="h5")
    for name, array in arrays.items():
        if array.dtype != np.float32:
            found = Spec(array.dtype.name, array.shape)
            raise UnsupportedError(
                f"parameter {name!r} is {found}, and a .h5 file of DLPrimitives holds float32 "
                "alone: save with weights='dlp'"
            )
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            _add(file, name, np.ascontiguousarray(array))


def _add(file: Any, name: str, array: np.ndarray[Any, Any]) -> None:
    """Add a dataset. Names are paths in HDF5: it takes some amiss, and shortens others."""
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


def _datasets(h5py: Any, file: Any) -> list[tuple[str, Any]]:
    """List the datasets, in groups too, for a name may have slashes; links are not followed."""
    found: list[tuple[str, Any]] = []
    pending = [("", file)]
    while pending:
        prefix, group = pending.pop()
        for key in group:
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                continue
            item = group[key]
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu":
                found.append((prefix + key, item))
            elif isinstance(item, h5py.Group) and prefix.count("/") < 16:
                pending.append((f"{prefix}{key}/", item))
            if len(found) + len(pending) > _MOST_DATASETS:
                raise ValueError("it has too many datasets")
    return sorted(found, key=lambda pair: pair[0])
