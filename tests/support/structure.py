"""The package as its sources show it: modules, their imports, and circles among them."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from places import ROOT

PACKAGE = ROOT / "python" / "passlib"
_T = TypeVar("_T", bound=Hashable)


def dotted(path: Path) -> str:
    """Return the name of a module; that of a package for its ``__init__.py``."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}
"""The file of every module, by its name."""


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Parse a source file."""
    return ast.parse(path.read_text("utf-8"))


class Import(NamedTuple):
    """An import of a module of the package, wherever in the file it stands."""

    module: str
    """The module, or ``passlib._core``."""
    name: str
    """The name that is taken from it; empty for the module itself."""


@functools.cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Return the imports from the package in a file.

    Imports in functions and for the type checker count like all others.
    """
    return tuple(_imports_in(path))


def _imports_in(path: Path) -> Iterator[Import]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "passlib":
                    yield _resolved(alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: line {node.lineno}: relative import"
            module = node.module or ""
            if module.split(".")[0] == "passlib":
                for alias in node.names:
                    yield _resolved(module, alias.name)


def named_in(path: Path) -> set[str]:
    """Return the modules whose names a file has as texts: imported, or looked up.

    These are names of modules, as for ``import_module``; names of dialects that register, which
    stand for their modules; and names of passes in Python, which stand for theirs.
    """
    texts = _texts_in(path)
    found = {name for name in MODULES if "." in name and not texts.isdisjoint((name, f"{name}."))}
    return found | {module for name, module in _providers().items() if name in texts}


def _texts_in(path: Path) -> set[str]:
    """Return the texts in a file, without its docstrings."""
    nodes = list(ast.walk(parsed(path)))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    }


@functools.cache
def _providers() -> dict[str, str]:
    """Return the module of each registered dialect and of each standard pass in Python, by name."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    group = project.partition('[project.entry-points."passlib.dialects"]')[2].partition("[")[0]
    found = dict(re.findall(r'^(\w+) = "(.*):dialect"$', group, re.MULTILINE))
    for module, path in MODULES.items():
        if module.startswith("passlib.passes.standard."):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "graph_pass":
                    names = [word.value for word in node.keywords if word.arg == "name"]
                    found |= {n.value: module for n in names if isinstance(n, ast.Constant)}
    return found


def _resolved(module: str, name: str) -> Import:
    if module.startswith("passlib._core") or (module, name) == ("passlib", "_core"):
        return Import("passlib._core", name if module != "passlib" else "")
    if name and f"{module}.{name}" in MODULES:
        return Import(f"{module}.{name}", "")
    while module not in MODULES:
        module, _, name = module.rpartition(".")
    return Import(module, name)


def circles(graph: Mapping[_T, Iterable[_T]]) -> list[list[_T]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm)."""
    number: dict[_T, int] = {}
    lowest: dict[_T, int] = {}
    path: list[_T] = []
    on_path: set[_T] = set()
    found = []

    def enter(node: _T) -> tuple[_T, Iterator[_T]]:
        number[node] = lowest[node] = len(number)
        path.append(node)
        on_path.add(node)
        return node, iter(graph.get(node, ()))

    for root in graph:
        stack = [] if root in number else [enter(root)]
        while stack:
            node, rest = stack[-1]
            for other in rest:
                if other not in number:
                    stack.append(enter(other))
                    break
                if other in on_path:
                    lowest[node] = min(lowest[node], number[other])
            else:
                stack.pop()
                if stack:
                    parent = stack[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == number[node]:
                    members = []
                    while not members or members[-1] != node:
                        members.append(path.pop())
                        on_path.discard(members[-1])
                    if len(members) > 1:
                        found.append(members)
    return found
