"""Dictionaries of weights in files of every format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.storage import Array, Sparse
from passlib.arrays.views import AnyArray, from_parts, to_parts
from passlib.dialects.weights.files import load_parts
from passlib.dialects.weights.npz_writer import write_npz
from passlib.dialects.weights.params_writer import write_list
from passlib.errors import UnsupportedError
from passlib.files.optional import require
from passlib.files.regular import replacing, written_from


def load_weights(path: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Read named arrays from a .params, .npz or .safetensors file.

    Parameters
    ----------
    path : path-like
        The content determines the format, not the suffix.

    Returns
    -------
    dict of str to array
        Files of 1 MB or more are mapped, not read; writing to an array does not modify them.

    Raises
    ------
    FormatError
        The file is damaged, of no known format, or has no names.
    PasslibError
        A .safetensors file, and the package ``safetensors`` is not installed.
    OSError
        The file cannot be read.
    """
    return {name: from_parts(parts) for name, parts in load_parts(path).items()}


def save_weights(path: str | os.PathLike[str], mapping: Mapping[str, Any]) -> None:
    """Write named arrays in the format of the suffix; a failure leaves an old file unchanged.

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
        The format cannot represent one of the arrays.
    PasslibError
        The suffix is ``.safetensors`` and the package ``safetensors`` is not installed.
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
            f"{os.fspath(path)!r} has no known suffix; use .params, .npz or .safetensors"
        )


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
        # The package writes the memory of an array regardless of its strides.
        plain[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    with written_from(plain.values()), replacing(path) as temporary:
        writer.save_file(plain, temporary)
