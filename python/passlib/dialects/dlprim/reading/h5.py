"""Reading .h5 weight files: HDF5 with one dataset for each parameter, at the root by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import FormatError
from passlib.files.optional import require

__all__ = ["MAGIC", "read"]

MAGIC: Final = b"\x89HDF"

_EXPANSION: Final = 1100
"""Upper bound of HDF5's compression; datasets beyond it are made to exhaust memory."""

_SMALL: Final = 1 << 20
_MOST_DATASETS: Final = 1 << 20


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read a .h5 file.

    Returns
    -------
    dict of str to numpy.ndarray
        Every numeric dataset, as float32, ordered by name.

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
                    # A model from elsewhere must not read arbitrary files of its user.
                    raise FormatError(f"{path}: dataset {name!r} keeps its elements in other files")
                if dataset.shape is None:
                    raise FormatError(f"{path}: dataset {name!r} has no elements and no shape")
                limit -= dataset.size * max(dataset.dtype.itemsize, 4)
                if limit < 0:
                    raise FormatError(f"{path}: dataset {name!r} is larger than the file can hold")
                arrays[name] = np.asarray(dataset[()], np.float32)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise FormatError(f"{path}: HDF5 cannot read this file: {error}") from error
    return arrays


def _datasets(h5py: Any, file: Any) -> list[tuple[str, Any]]:
    """List the datasets, also those in groups since names may contain slashes; skip links."""
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
                raise ValueError("too many datasets")
    return sorted(found, key=lambda pair: pair[0])
