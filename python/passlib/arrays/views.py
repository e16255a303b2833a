"""Views of arrays: read-only ones, and those that readers and writers of files use."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from passlib.arrays.context import cpu
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray, wrap
from passlib.arrays.storage import Array, Sparse

__all__ = ["AnyArray", "from_parts", "read_only", "to_parts"]

AnyArray: TypeAlias = NDArray | BaseSparseNDArray
"""An array as users see it."""


def read_only(array: Any) -> Any:
    """Return a read-only view; sparse arrays, which have no views, are returned themselves.

    A pass that is lent a read-only array works on a copy.

    Parameters
    ----------
    array : numpy.ndarray or BaseSparseNDArray
    """
    if isinstance(array, BaseSparseNDArray):
        return array
    if type(array) is NDArray and not array.flags.writeable:
        return array
    view = array.view(NDArray)
    view.flags.writeable = False
    return view


def to_parts(array: Any) -> Array:
    """Return an array as readers and writers of dialects use it.

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
        The argument is not an array.
    """
    if isinstance(array, BaseSparseNDArray):
        return array.parts
    if isinstance(array, np.ndarray):
        return np.asarray(array)
    raise TypeError(f"{type(array).__name__} is not an array; make one with passlib.nd.array")


def from_parts(parts: Array) -> AnyArray:
    """Return an array from a reader as users see it.

    Parameters
    ----------
    parts : numpy.ndarray or Sparse

    Returns
    -------
    NDArray, RowSparseNDArray or CSRNDArray
        The same memory, labelled ``cpu(0)``.
    """
    return wrap(parts, cpu()) if isinstance(parts, Sparse) else parts.view(NDArray)
