"""Second names of modules, and packages whose names are imported when they are first used."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Collection, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader


class _SecondNames:
    """Finds modules by their second names, and loads the modules of the first names.

    It has the methods of `importlib.abc.MetaPathFinder` and `importlib.abc.Loader`; importing these
    takes a third as long as importing passlib.
    """

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        self._specs: dict[str, ModuleSpec | None] = {}

    def first_name(self, name: str) -> str:
        """Return the first name of a module; itself unless it or a package of it has two."""
        package, rest = name, ""
        while package:
            if package in self.first:
                return self.first[package] + rest
            package, _, last = package.rpartition(".")
            rest = f".{last}{rest}"
        return name

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a second name is loaded; None for all other names."""
        # A module that runs as a program has a separate namespace under either name.
        if name.endswith(".__main__") or self.first_name(name) == name:
            return None
        return ModuleSpec(name, cast("Loader", self))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module under its first name."""
        module = importlib.import_module(self.first_name(spec.name))
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
    """Make a module and its submodules known under a second dotted name.

    ``import second`` then imports the module ``first``, and ``import second.inner`` the module
    ``first.inner``.
    """
    _finder.first[second] = first


def lazily(
    package: str, file: str, unlisted: Collection[str] = (), modules_of: Collection[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__all__``, ``__getattr__`` and ``__dir__`` of a package with a stub file.

    The stub next to its ``__init__.py``, which type checkers and editors read, is the one list of
    its names: what it imports as ``name as name``. A name is imported when it is first used. The
    modules ``unlisted`` are no public names, but ``package.name`` imports them too. What the stub
    imports from the packages ``modules_of`` are modules, which `also` have these names.
    """
    stub = Path(file).with_suffix(".pyi").read_text("utf-8")
    found = re.findall(r"^from (\S+) import (\w+) as (\w+)", stub, re.MULTILINE)
    homes = {name: (package, name) for name in unlisted}
    homes |= {name: (home, own) for home, own, name in found}
    public = sorted(name for _, _, name in found)
    for name, (home, own) in homes.items():
        if home in modules_of and (home, own) != (package, name):
            also(f"{package}.{name}", f"{home}.{own}")

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, own = homes[name]
        if home == package:
            found: Any = importlib.import_module(f"{package}.{own}")
        else:
            found = getattr(importlib.import_module(home), own)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        dunder = (key for key in vars(sys.modules[package]) if key[:2] == key[-2:] == "__")
        return sorted([*public, *dunder])

    return public, get, names
