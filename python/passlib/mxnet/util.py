"""MXNet's ``mxnet.util``: the reading of shapes, environment variables, facts about GPUs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

from passlib.arrays.shape_mode import ShapeMode, is_np_shape, set_np_shape
from passlib.arrays.shape_mode import ShapeMode as np_shape  # noqa: N813 (MXNet's name)
from passlib.errors import UnsupportedError
from passlib.mxnet.training import NO_NP_ARRAYS

_T = TypeVar("_T")


def is_np_array() -> bool:
    """Return False: arrays are never those of ``mx.np``.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.util.is_np_array()
    False
    """
    return False


def np_array(active: bool = True) -> contextlib.AbstractContextManager[None]:
    """Return a context without effect.

    Raises
    ------
    UnsupportedError
        ``active``: passlib has no arrays of ``mx.np``.

    Examples
    --------
    >>> import passlib as mx
    >>> with mx.util.np_array(active=False):
    ...     mx.util.is_np_array()
    False
    """
    _refuse_np_arrays(active)
    return contextlib.nullcontext()


def use_np_array(func: _T) -> _T:
    """Raise an error, as `np_array`."""
    _refuse_np_arrays(func)
    return func


def use_np(func: _T) -> _T:
    """Raise an error, as `np_array`."""
    _refuse_np_arrays(func)
    return func


def set_np(shape: bool = True, array: bool = True) -> None:
    """Set the reading of shapes.

    Raises
    ------
    UnsupportedError
        ``array``: passlib has no arrays of ``mx.np``.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.util.set_np(array=False)
    >>> mx.nd.ones((2,))[0].shape
    ()
    >>> mx.util.reset_np()
    """
    _refuse_np_arrays(array)
    set_np_shape(shape)


def reset_np() -> None:
    """Read shapes as MXNet does by default."""
    set_np_shape(False)


def use_np_shape(func: Any) -> Any:
    """Return a function that reads shapes as NumPy does, or a class with such methods.

    Examples
    --------
    >>> import passlib as mx
    >>> @mx.util.use_np_shape
    ... def first(array):
    ...     return array[0].shape
    >>> first(mx.nd.ones((2,)))
    ()
    """
    if not isinstance(func, type):
        return ShapeMode()(func)
    for name, method in list(vars(func).items()):
        if callable(method) and not isinstance(method, type):
            setattr(func, name, ShapeMode()(method))
    return func


def set_module(module: str | None) -> Callable[[_T], _T]:
    """Return a decorator that sets ``__module__``."""

    def decorate(func: _T) -> _T:
        if module is not None:
            func.__module__ = module
        return func

    return decorate


def _refuse_np_arrays(wanted: object) -> None:
    if wanted:
        raise UnsupportedError(NO_NP_ARRAYS)


def getenv(name: str) -> str | None:
    """Return an environment variable, None if it is not set."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, or remove it if the value is None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """Return 0, the number of GPUs that passlib can use."""
    return 0


__all__ = [
    "get_gpu_count",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "np_array",
    "np_shape",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_shape",
]
