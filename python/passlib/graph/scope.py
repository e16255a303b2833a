"""Attribute scopes: attributes for all symbols built inside a ``with`` block; their spelling."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType

import numpy as np

__all__ = ["AttrScope", "current", "text"]

_local = threading.local()


class AttrScope:
    """Adds attributes to all symbols created inside the ``with`` block; inner scopes win.

    Parameters
    ----------
    **attrs : str

    Raises
    ------
    ValueError
        A value is no string.
    """

    def __init__(self, **attrs: str) -> None:
        for key, value in attrs.items():
            if not isinstance(value, str):
                message = f"AttrScope: attribute {key!r} is {value!r}; write it as a string"
                raise ValueError(message)
        self._own = attrs
        self._all: Mapping[str, str] = attrs
        self._outer: list[AttrScope] = []

    def get(self, attrs: Mapping[str, str] | None) -> dict[str, str]:
        """Return the scope's attributes overridden by ``attrs``."""
        return {**self._all, **(attrs or {})}

    def __enter__(self) -> AttrScope:
        outer = current()
        self._outer.append(outer)
        self._all = {**outer._all, **self._own}
        _local.scope = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _local.scope = self._outer.pop()


def current() -> AttrScope:
    """Return the scope in which this thread builds."""
    scope = getattr(_local, "scope", None)
    if not isinstance(scope, AttrScope):
        scope = _local.scope = AttrScope()
    return scope


def text(value: object) -> str:
    """Spell an attribute's value as MXNet writes it: ``str`` of the plain Python value.

    NumPy's numbers are spelled as plain ones, however NumPy prints them inside a tuple.
    """
    return value if isinstance(value, str) else str(_plain(value))


def _plain(value: object) -> object:
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(item) for item in value) if _is_bare(value) else value
    return value.item() if isinstance(value, np.integer) else value


def _is_bare(value: tuple[object, ...] | list[object]) -> bool:
    return type(value) in (tuple, list)
