"""Weights of a model: arrays that cannot be written to through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray, NDArray
from passlib.arrays.context import cpu
from passlib.arrays.read_only import read_only

__all__ = ["frozen", "owner"]


def frozen(name: str, array: Any) -> Any:
    """Return a weight as the model holds it, see `passlib.arrays.read_only.read_only`.

    Raises
    ------
    TypeError
        The weight is not an array.
    """
    if not isinstance(array, (np.ndarray, BaseSparseNDArray)):
        raise TypeError(f"weight {name!r} is not an array, but of type {type(array).__name__}")
    return read_only(array)


def owner(array: Any) -> Any:
    """Return the array whose whole memory this one is a view of, else the array itself.

    A dialect's template may hold the same array; pickle writes one object only once.
    """
    base = getattr(array, "base", None)
    while isinstance(base, np.ndarray) and _layout(base) == _layout(array):
        array, base = base, base.base
    return array


def _layout(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    context = array.context if isinstance(array, NDArray) else cpu()
    return array.ctypes.data, array.shape, array.strides, array.dtype, context
