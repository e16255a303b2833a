"""Decorators that give functions the keywords of NumPy's universal functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from passlib.errors import UnsupportedError

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
