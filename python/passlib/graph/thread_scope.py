"""Objects that are current inside a ``with`` block of one thread."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, TypeVar

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
