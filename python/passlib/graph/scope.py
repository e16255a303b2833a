"""Objects that are current inside a ``with`` block of one thread; attribute scopes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

_S = TypeVar("_S", bound="ThreadScope")


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes: list[Any] = []


class ThreadScope:
    """Base class of context managers that nest; direct subclasses have a stack of their own."""

    _stack: ClassVar[_Stack]

    def __init_subclass__(cls) -> None:
        if ThreadScope in cls.__bases__:
            cls._stack = _Stack()

    def __enter__(self: _S) -> _S:
        self._stack.scopes.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.scopes.pop()


def innermost(kind: type[_S]) -> _S:
    """Return the scope of this kind that is current in this thread, by default a new one."""
    scopes: list[_S] = kind._stack.scopes
    if not scopes:
        scopes.append(kind())
    return scopes[-1]


class AttrScope(ThreadScope):
    """Adds attributes to all symbols created inside the ``with`` block; inner scopes win.

    Raises
    ------
    ValueError
        A value is no string.

    Examples
    --------
    >>> import passlib as pl
    >>> with pl.AttrScope(__layout__="NCHW"):
    ...     x = pl.sym.var("x")
    >>> x.attr("__layout__")
    'NCHW'
    """

    def __init__(self, **attrs: str) -> None:
        for key, value in attrs.items():
            if not isinstance(value, str):
                message = f"AttrScope: attribute {key!r} is {value!r}; write it as a string"
                raise ValueError(message)
        self._own = attrs
        self._all: Mapping[str, str] = attrs

    def get(self, attrs: Mapping[str, str] | None) -> dict[str, str]:
        """Return the scope's attributes overridden by ``attrs``."""
        return {**self._all, **(attrs or {})}

    def __enter__(self) -> AttrScope:
        self._all = {**current()._all, **self._own}
        return super().__enter__()


def current() -> AttrScope:
    """Return the scope in which this thread builds.

    Examples
    --------
    >>> import passlib as mx
    >>> with mx.AttrScope(__group__="first") as scope:
    ...     mx.attribute.current() is scope
    True
    """
    return innermost(AttrScope)


def text(value: object) -> str:
    """Spell an attribute's value as MXNet writes it: ``str`` of the plain Python value.

    NumPy's numbers are spelled as plain ones, however NumPy prints them inside a tuple.
    """
    return value if isinstance(value, str) else str(_plain(value))


def _plain(value: object) -> object:
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return value.item() if isinstance(value, np.integer) else value
