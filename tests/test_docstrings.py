"""Every public class and function is documented, with an example that runs."""

from __future__ import annotations

import ast
import ctypes
import doctest
import inspect
import itertools
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import passlib
from places import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_site"))

from public_listing import MODULES, documented_at, lines, public

PAGES = ROOT / "docs" / "reference"
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


MXNETS_HELPERS = [f"passlib.mxnet.{module}" for module in ("base", "test_utils", "util")]
"""Modules of MXNet's own helpers, which tests/mxnet/names tests."""

POINTER = type(ctypes.POINTER(ctypes.c_float))


def is_own(value: object) -> bool:
    """Whether a value is a class or function of passlib, and no type of C or of Python."""
    home = getattr(value, "__module__", None) or ""
    return callable(value) and home.startswith("passlib.") and not isinstance(value, POINTER)


def refuses(value: Any) -> bool:
    """Whether a function does nothing but raise an error."""
    return inspect.isfunction(value) and inspect.signature(value).return_annotation == "NoReturn"


NAMES = {
    f"{module}.{name}": value
    for module in MODULES
    for name, value in public(module).items()
    if is_own(value) and documented_at(module, value) is None
}


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getdoc(NAMES[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, name, 0)
    known = refuses(NAMES[name]) or NAMES[name].__module__ in MXNETS_HELPERS
    assert test.examples or known, f"{name} has no example"
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(NAMES[name], "_fields")])
def test_fields_are_explained(name: str) -> None:
    """Where nothing stands, Python says "Alias for field number 0"."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(NAMES[name]))).body
    assert isinstance(tree, ast.ClassDef)
    explained = [
        field.target.id
        for field, after in itertools.pairwise(tree.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    ]
    assert explained == list(NAMES[name]._fields)


def test_every_module_is_on_a_page() -> None:
    pages = "".join(page.read_text("utf-8") for page in PAGES.glob("*.md"))
    assert [module for module in MODULES if f".. public-names:: {module}\n" not in pages] == []


def test_every_public_module_is_documented() -> None:
    found = (getattr(passlib, name) for name in passlib.__all__)
    modules = {each.__name__ for each in found if inspect.ismodule(each)}
    # It trains, which its own error says.
    assert modules - {"passlib.mxnet.autograd"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_on_its_page(module: str) -> None:
    text = "\n".join(lines(module))
    directives = {line.rpartition(".")[2] for line in text.splitlines() if ".. auto" in line}
    elsewhere = {line.split("``")[1] for line in text.splitlines() if line.startswith("- ``")}
    assert directives | elsewhere == {*public(module)}
