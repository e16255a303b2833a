"""Attribute scopes: attributes for all symbols built inside a ``with`` block; their spelling."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from passlib.graph.thread_scope import ThreadScope, innermost


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
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(item) for item in value) if _is_bare(value) else value
    return value.item() if isinstance(value, np.integer) else value


def _is_bare(value: tuple[object, ...] | list[object]) -> bool:
    return type(value) in (tuple, list)
