"""MXNet's two readings of shapes: whether () is a scalar and 0 a size, or both are unknown."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])


class _Mode(threading.local):
    numpy = False


_mode = _Mode()


class ShapeMode:
    """Sets the reading of shapes in a ``with`` block, or in a function that it decorates.

    Parameters
    ----------
    active : bool
        True for NumPy's: results of one element may have the shape ``()``.

    Examples
    --------
    >>> import passlib as pl
    >>> with pl.np_shape():
    ...     pl.nd.array([1, 2])[0].shape
    ()
    """

    def __init__(self, active: bool = True) -> None:
        self._active = active
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(set_np_shape(self._active))

    def __exit__(self, *exception: object) -> None:
        set_np_shape(self._before.pop())

    def __call__(self, function: _F) -> _F:
        """Return the function, which then runs in this mode."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with ShapeMode(self._active):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


def is_np_shape() -> bool:
    """Whether this thread reads shapes as NumPy does; not so by default, as in MXNet.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.is_np_shape()
    False
    """
    return _mode.numpy


def set_np_shape(active: bool) -> bool:
    """Set the reading of shapes in this thread, and return the one before.

    Examples
    --------
    >>> import passlib as pl
    >>> before = pl.set_np_shape(True)
    >>> pl.is_np_shape(), pl.set_np_shape(before)
    (True, True)
    """
    before, _mode.numpy = _mode.numpy, bool(active)
    return before


def in_shape_mode(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array itself; one of shape ``()`` as ``(1,)`` unless shapes are NumPy's."""
    return array.reshape(1) if array.ndim == 0 and not _mode.numpy else array
