"""Functions that are made when they are asked for, as attributes of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["Namespace"]


class Namespace:
    """The operators of one prefix, and functions beside them, as attributes.

    Parameters
    ----------
    module : str
        Where the namespace stands, as a user writes it: ``"sym"``, ``"nd"``.
    name : str
        ``""`` for the operators without prefix.
    find : callable
        Gives the function of an operator from its name and that of the namespace; raises
        AttributeError for a name that it does not know.
    names : callable
        Names the operators of a namespace.
    functions : mapping of str to callable, optional
        Functions that come before operators of the same name.
    """

    def __init__(
        self,
        module: str,
        name: str,
        find: Callable[[str, str], Callable[..., Any]],
        names: Callable[[str], Iterable[str]],
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._module = module
        self._name = name
        self._find = find
        self._names = names
        self._functions = functions or {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._functions.get(name) or self._find(name, self._name)

    def __dir__(self) -> list[str]:
        return sorted({*self._names(self._name), *self._functions})

    def __repr__(self) -> str:
        return f"<operators {self._module}.{self._name or 'op'}>"
