"""MXNet's switches between its own arrays and shapes and those of NumPy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from passlib.arrays.shape_mode import ShapeMode, set_np_shape
from passlib.errors import UnsupportedError

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
    """Raise an error, as `np_array`.

    Examples
    --------
    >>> import passlib as mx
    >>> try:
    ...     mx.util.use_np_array(len)
    ... except mx.MXNetError as error:
    ...     print(type(error).__name__)
    UnsupportedError
    """
    _refuse_np_arrays(func)
    return func


def use_np(func: _T) -> _T:
    """Raise an error, as `np_array`.

    Examples
    --------
    >>> import passlib as mx
    >>> try:
    ...     mx.util.use_np(len)
    ... except mx.MXNetError as error:
    ...     print(type(error).__name__)
    UnsupportedError
    """
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
    """Read shapes as MXNet does by default.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.util.set_np(array=False)
    >>> mx.util.reset_np()
    >>> mx.util.is_np_shape()
    False
    """
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
    """Return a decorator that sets ``__module__``.

    Examples
    --------
    >>> import passlib as mx
    >>> @mx.util.set_module("mymodels")
    ... def build() -> None:
    ...     pass
    >>> build.__module__
    'mymodels'
    """

    def decorate(func: _T) -> _T:
        if module is not None:
            func.__module__ = module
        return func

    return decorate


def _refuse_np_arrays(wanted: object) -> None:
    if wanted:
        raise UnsupportedError(
            "passlib has no arrays of mx.np; models that use them load and run, and arrays are "
            "those of passlib.nd. np_shape alone changes the reading of shapes"
        )
