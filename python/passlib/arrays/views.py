"""Forms of arrays: read-only ones, those of readers and writers, and those still to be computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

import passlib._core as _core
from passlib.arrays.context import cpu
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import Array, BaseSparseNDArray, Sparse, wrap

AnyArray: TypeAlias = NDArray | BaseSparseNDArray
"""An array as users see it."""


def read_only(array: Any) -> Any:
    """Return a read-only view; sparse arrays, which have no views, are returned themselves.

    A pass that is lent a read-only array works on a copy.
    """
    if isinstance(array, BaseSparseNDArray):
        return array
    if type(array) is NDArray and not array.flags.writeable:
        return array
    view = array.view(NDArray)
    view.flags.writeable = False
    return view


def to_parts(array: Any) -> Array:
    """Return an array as readers and writers of dialects use it, on the same memory.

    Raises `TypeError` if the argument is not an array.
    """
    if isinstance(array, BaseSparseNDArray):
        return array.parts
    if isinstance(array, np.ndarray):
        return np.asarray(array)
    raise TypeError(f"{type(array).__name__} is not an array; make one with passlib.nd.array")


def from_parts(parts: Array) -> AnyArray:
    """Return an array from a reader as users see it, on the same memory, labelled ``cpu(0)``."""
    return wrap(parts, cpu()) if isinstance(parts, Sparse) else parts.view(NDArray)


def computed(array: Any) -> Any:
    """Return an array in memory; a computed one must not be written to."""
    return array.array if type(array) is _core.ScaledArray else array


def still_to_compute(arrays: Mapping[str, Any]) -> list[str]:
    """Return the names of the arrays that are not in memory."""
    if _core.ScaledArray not in set(map(type, arrays.values())):
        return []
    return [name for name, array in arrays.items() if type(array) is _core.ScaledArray]
