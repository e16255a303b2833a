"""Saving and loading arrays in MXNet's file formats."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from passlib.arrays.context import cpu
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray, wrap
from passlib.arrays.storage import Array, Sparse
from passlib.dialects.mxnet import params
from passlib.dialects.mxnet.params_writer import write_list
from passlib.files.source import Source

__all__ = ["AnyArray", "from_parts", "load", "load_frombuffer", "save", "to_parts"]

AnyArray: TypeAlias = NDArray | BaseSparseNDArray
"""What `load` gives for each array."""


def save(
    fname: str | os.PathLike[str],
    data: AnyArray | Sequence[Any] | Mapping[str, Any],
    *,
    np_shape: bool | None = None,
) -> None:
    """Write arrays to a .params file, byte for byte as MXNet 1.9.1 does.

    Parameters
    ----------
    fname : path-like
        Replaced as a whole: where anything fails, an old file stays as it was.
    data : array, sequence of arrays or mapping of str to array
        Arrays of passlib, or NumPy's.
    np_shape : bool, optional
        Whether to write what MXNet writes, and can read, only while its NumPy shapes are on
        (``mx.util.np_shape``). By default so where an array is 0-d, for which the other form
        has no place.

    Raises
    ------
    UnsupportedError
        An element type that MXNet lacks, or 0-d and sparse arrays in one file.
    TypeError
        Something is not an array, or a name not a str.
    """
    names: list[str] = []
    if isinstance(data, Mapping):
        names, arrays = list(data.keys()), list(data.values())
    elif isinstance(data, (np.ndarray, BaseSparseNDArray)):
        arrays = [data]
    elif isinstance(data, (list, tuple)):
        arrays = list(data)
    else:
        raise TypeError(
            f"data is of type {type(data).__name__}; save takes an array, a list of arrays or a "
            "dict of str to array"
        )
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} is not a str")
    contexts = [getattr(array, "context", None) or cpu() for array in arrays]
    write_list(fname, [to_parts(a) for a in arrays], names, contexts=contexts, np_shape=np_shape)


def load(fname: str | os.PathLike[str]) -> dict[str, AnyArray] | list[AnyArray]:
    """Read arrays from a .params file of any version, or from the .npz and .npy of MXNet 2.0.

    Parameters
    ----------
    fname : path-like
        The content decides, not the name.

    Returns
    -------
    dict of str to array, or list of arrays
        A list where the arrays have no names. All on ``cpu(0)``. Arrays of files of 1 MB or
        more are mapped, not read; writing to them does not change the file.

    Raises
    ------
    FormatError
        With the byte offset.
    OSError
        The file cannot be read.
    """
    return _wrap_all(params.read(fname))


def load_frombuffer(buf: bytes | bytearray | memoryview) -> dict[str, AnyArray] | list[AnyArray]:
    """Do what `load` does, for bytes in memory.

    Parameters
    ----------
    buf : bytes-like
        Copied.

    Returns
    -------
    dict of str to array, or list of arrays

    Raises
    ------
    FormatError
        With the byte offset.
    """
    return _wrap_all(params.read_source(Source(bytearray(buf), "<buffer>")))


def to_parts(array: Any) -> Array:
    """Give what the readers and writers of dialects work with.

    Parameters
    ----------
    array : NDArray, numpy.ndarray or BaseSparseNDArray

    Returns
    -------
    numpy.ndarray or Sparse
        The same memory.

    Raises
    ------
    TypeError
        Not an array.
    """
    if isinstance(array, BaseSparseNDArray):
        return array.parts
    if isinstance(array, np.ndarray):
        return np.asarray(array)
    raise TypeError(f"{type(array).__name__} is not an array; make one with passlib.nd.array")


def from_parts(parts: Array) -> AnyArray:
    """Give the user's kind of array for what a reader read.

    Parameters
    ----------
    parts : numpy.ndarray or Sparse

    Returns
    -------
    NDArray, RowSparseNDArray or CSRNDArray
        The same memory, on ``cpu(0)``.
    """
    return wrap(parts, cpu()) if isinstance(parts, Sparse) else parts.view(NDArray)


def _wrap_all(content: dict[str, Array] | list[Array]) -> dict[str, AnyArray] | list[AnyArray]:
    if isinstance(content, dict):
        return {name: from_parts(parts) for name, parts in content.items()}
    return [from_parts(parts) for parts in content]
