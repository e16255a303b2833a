"""Modules that can be imported under a second name, without being imported before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader


class _SecondNames:
    """Finds modules by their second names; what it loads is the very module of the first.

    It has the methods of `importlib.abc.MetaPathFinder` and `importlib.abc.Loader`; importing these
    takes a third as long as importing passlib.
    """

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a second name is loaded; None for all other names."""
        del path, target
        package, _, rest = name.partition(".")
        # A module that runs as a program has a namespace of its own under either name.
        if rest not in ("", "__main__") and package in self.packages:
            self.first[name] = f"{self.packages[package]}.{rest}"
        return ModuleSpec(name, cast("Loader", self)) if name in self.first else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module under its first name."""
        module = importlib.import_module(self.first[spec.name])
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the description of the module, which the import system has just replaced."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs[module.__spec__.name]


_finder = _SecondNames()
# Before the finder of files, which would load a package's files once more under its second name.
sys.meta_path.insert(0, _finder)


def also(second: str, first: str) -> None:
    """Make a module known under a second name: ``import second`` then gives the module ``first``.

    Parameters
    ----------
    second, first : str
        Dotted names.
    """
    _finder.first[second] = first


def also_within(second: str, first: str) -> None:
    """Make all modules within a package known under a second name of the package.

    Parameters
    ----------
    second, first : str
        Names of top-level packages.
    """
    _finder.packages[second] = first
