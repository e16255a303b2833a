"""Reader of MXNet's parameter files of any form."""

from __future__ import annotations

import os

from passlib.arrays.storage import Array
from passlib.dialects.weights.ndarray_list import LIST_MAGIC, read_list
from passlib.dialects.weights.npy import NPY_MAGIC, read_array
from passlib.dialects.weights.npz import ZIP_MAGIC, read_npz
from passlib.files.regular import memory_named
from passlib.files.source import Source


def read(path: str | os.PathLike[str]) -> dict[str, Array] | list[Array]:
    """Read a file of arrays; its content determines the form.

    Parameters
    ----------
    path : path-like
        A list of arrays of MXNet up to 1.9, or the .npz or .npy of 2.0.

    Returns
    -------
    dict of str to array, or list of arrays
        A list where the file has no names, as also for an empty file of MXNet up to 1.9.
        Arrays of a file of 1 MB or more are mapped; writing to them does not change it.

    Raises
    ------
    FormatError
        The file is damaged; the message has the byte offset.
    OSError
        The file cannot be read.
    """
    source = Source.open(path)
    with memory_named(path):
        return read_source(source)


def read_source(source: Source) -> dict[str, Array] | list[Array]:
    """Read arrays from bytes, like `read`.

    Parameters
    ----------
    source : Source

    Returns
    -------
    dict of str to array, or list of arrays

    Raises
    ------
    FormatError
    """
    start = bytes(source.data[:8])
    if start.startswith(ZIP_MAGIC):
        return read_npz(source)
    if start.startswith(NPY_MAGIC):
        return [read_array(source, 0, "the array")[0]]
    if start != LIST_MAGIC.to_bytes(8, "little"):
        raise source.fail(
            0,
            "this is no parameter file of MXNet: it begins with "
            f"{start.hex(' ') or 'nothing'}, not like a list of arrays (12 01), an .npz (50 4b) "
            "or an .npy (93 4e)",
        )
    arrays, names, _ = read_list(source)
    return dict(zip(names, arrays, strict=True)) if names else arrays
