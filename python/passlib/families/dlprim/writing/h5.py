"""Writing .h5 weight files: HDF5 with one dataset for each parameter, at the root by its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from passlib.errors import UnsupportedError
from passlib.families.dlprim.network import Spec
from passlib.files.optional import require


def write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
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
