"""Writer of .npz archives in the layout that `passlib.dialects.weights.npz` describes."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.storage import Array, Sparse
from passlib.errors import UnsupportedError
from passlib.files.regular import replacing, written_from


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write an archive for MXNet 2.0 and `numpy.load`; a failure leaves an existing file unchanged.

    Parameters
    ----------
    path : path-like
        Used unchanged; no suffix is added.
    arrays : mapping of str to numpy.ndarray or Sparse

    Raises
    ------
    UnsupportedError
        An element type that MXNet lacks.
    ValueError
        Two arrays would have the same member name.
    """
    members: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        for member, part in _members(name, array):
            if member in members:
                raise ValueError(f"two arrays would be written as {member!r}; rename one")
            members[member] = _storable(part, name)
    with (
        written_from(arrays.values()),
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", allowZip64=True) as archive,
    ):
        for member, part in members.items():
            # A fixed date makes the files of equal weights equal.
            info = zipfile.ZipInfo(f"{member}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w", force_zip64=part.nbytes >= 1 << 31) as stream:
                header = io.BytesIO()
                np.lib.format.write_array_header_1_0(
                    header, np.lib.format.header_data_from_array_1_0(part)
                )
                stream.write(header.getvalue())
                stream.write(part.reshape(-1).view(np.uint8).data)


def _members(name: str, array: Array) -> list[tuple[str, np.ndarray[Any, Any]]]:
    if not isinstance(array, Sparse):
        return [(name, array)]
    parts = [("data", array.data), ("indices", array.indices)]
    if array.indptr is not None:
        parts.append(("indptr", array.indptr))
    parts.append(("shape", np.array(array.shape, np.int64)))
    parts.append(("format", np.array(array.stype.encode())))
    return [(f"{name}/{leaf}", part) for leaf, part in parts]


def _storable(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    plain = np.asarray(array)
    if plain.dtype.kind != "S":
        try:
            number = dtypes.code(plain.dtype)
        except UnsupportedError as error:
            raise UnsupportedError(f"array {name!r}: {error}") from error
        if number == dtypes.BFLOAT16_CODE:
            plain = np.ascontiguousarray(plain).view([("bfloat16", "<u2")]).reshape(plain.shape)
    if not plain.dtype.isnative:
        plain = plain.astype(plain.dtype.newbyteorder("="))
    return plain if plain.flags.c_contiguous else np.ascontiguousarray(plain)
