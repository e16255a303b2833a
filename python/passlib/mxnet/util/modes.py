"""MXNet's switches between its own arrays and shapes and those of NumPy."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

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


_DEFAULTS: Final = {
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "subok": True,
}
_LEGAL: Final = {
    "where": (True, False),
    "casting": ("no", "equiv", "safe", "same_kind", "unsafe"),
    "order": ("C", "F", "A", "K"),
    "dtype": ("int8", "uint8", "int32", "int64", "float16", "float32", "float64"),
    "subok": (True, False),
}


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Whether a universal function of NumPy takes a keyword with this value.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.util.np_ufunc_legal_option("where", True)
    True
    """
    if key == "dtype":
        return str(getattr(value, "__name__", value)) in _LEGAL["dtype"]
    return value in _LEGAL.get(key, ())


def wrap_np_unary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of one array and ``out`` that takes the keywords of NumPy's functions.

    It raises UnsupportedError for values other than NumPy's defaults, and TypeError for other
    keywords or too many arguments.

    Examples
    --------
    >>> import passlib as mx
    >>> negative = mx.util.wrap_np_unary_func(lambda x, out=None: -x)
    >>> negative(mx.nd.array([1]), where=True).asnumpy()
    array([-1.], dtype=float32)
    """
    return _wrapped(func, 1)


def wrap_np_binary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two arrays and ``out``; see `wrap_np_unary_func`.

    Examples
    --------
    >>> import passlib as mx
    >>> add = mx.util.wrap_np_binary_func(lambda x1, x2, out=None: x1 + x2)
    >>> add(mx.nd.array([1]), mx.nd.array([2]), where=True).asnumpy()
    array([3.], dtype=float32)
    """
    return _wrapped(func, 2)


def _wrapped(func: Callable[..., Any], arrays: int) -> Callable[..., Any]:
    name = func.__name__

    @functools.wraps(func)
    def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if not arrays <= len(args) <= arrays + 1:
            raise TypeError(f"{name}() takes {arrays} arrays and out, not {len(args)} arguments")
        for key, value in kwargs.items():
            if key not in _DEFAULTS:
                raise TypeError(f"{name}() has no keyword {key!r}; it has {', '.join(_DEFAULTS)}")
            if not np_ufunc_legal_option(key, value):
                raise TypeError(f"{name}(): {key} cannot be {value!r}")
            if value != _DEFAULTS[key]:
                raise UnsupportedError(f"{name}(): {key}={value!r} is not supported")
        return func(*args[:arrays], out=args[arrays] if len(args) > arrays else out)

    return wrapper
