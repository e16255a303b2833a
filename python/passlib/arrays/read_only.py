"""Read-only views of arrays."""

from __future__ import annotations

from typing import Any

from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray

__all__ = ["read_only"]


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
