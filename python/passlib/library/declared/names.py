"""The names of a library's passes, with what each declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from passlib.library.declared.declaration import Declaration


class PassNames(tuple[str, ...]):
    """Names of passes in the order of their registration, and their declarations by name.

    ``passes[0]`` is a name, ``passes["fold"]`` a `Declaration`.
    """

    declarations: dict[str, Declaration]
    """By name."""

    def __new__(cls, declarations: Iterable[Declaration]) -> PassNames:
        """Make the names of declarations."""
        listed = list(declarations)
        made = super().__new__(cls, (declaration.name for declaration in listed))
        made.declarations = {declaration.name: declaration for declaration in listed}
        return made

    @overload
    def __getitem__(self, key: str, /) -> Declaration: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[str, ...]: ...
    def __getitem__(self, key: Any, /) -> Any:
        """Return the name at a position, or what the pass of a name declares."""
        return self.declarations[key] if isinstance(key, str) else super().__getitem__(key)
