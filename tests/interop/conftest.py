"""The real MXNet as a fixture, libraries built with either header, the number of pairs compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import environment
import passlib
from environment import PASSES, Environment, UnavailableError
from mxnet_process import MXNet
from places import ROOT

PORTABLE_SOURCES = [PASSES / name for name in ("structure.cc", "texts.cc", "weights.cc")]
_pairs: dict[str, set[tuple[str, str]]] = {"passlib": set(), "MXNet": set()}


def _or_skip(action: Callable[[], object]) -> object:
    try:
        return action()
    except UnavailableError as reason:
        if os.environ.get("PASSLIB_REQUIRE_INTEROP") == "1":
            pytest.fail(f"the interop tests must run here, but {reason}", pytrace=False)
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def mxnet_environment() -> Environment:
    found = _or_skip(environment.find)
    assert isinstance(found, Environment)
    return found


@pytest.fixture(scope="session")
def built_with_passlib(mxnet_environment: Environment) -> Path:
    """Build a library of all passes with passlib's header."""
    extended = [PASSES / f"{name}.cc" for name in ("editing", "declared", "patterns")]
    sources = [*PORTABLE_SOURCES, *extended]
    library = _or_skip(lambda: environment.build("interop_passlib", sources, [ROOT / "include"]))
    assert isinstance(library, Path)
    return library


@pytest.fixture(scope="session")
def built_with_mxnet(mxnet_environment: Environment) -> Path:
    """Build a library of the portable passes with the header and lib_api.cc of MXNet's wheel."""
    package = mxnet_environment.package
    sources = [*PORTABLE_SOURCES, package / "src" / "lib_api.cc"]
    library = _or_skip(lambda: environment.build("interop_mxnet", sources, [package / "include"]))
    assert isinstance(library, Path)
    return library


@pytest.fixture(scope="module")
def mxnet(request: pytest.FixtureRequest, mxnet_environment: Environment) -> Iterator[MXNet]:
    """Run MXNet, with the fixture that the module names in LIBRARY loaded in both hosts."""
    libraries = []
    if fixture := getattr(request.module, "LIBRARY", None):
        libraries = [request.getfixturevalue(fixture)]
        passlib.library.load(libraries[0], replace=True)
    process = MXNet(mxnet_environment, libraries)
    yield process
    process.close()


@pytest.fixture
def count_pair() -> Callable[[str, str, str], None]:
    """Count a pass built with a header whose results on a model are equal on both sides."""

    def note(header: str, model: str, case: str) -> None:
        _pairs[header].add((model, case))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if any(_pairs.values()):
        ours, theirs = len(_pairs["passlib"]), len(_pairs["MXNet"])
        terminalreporter.write_line(
            f"interop: {ours} model x pass pairs built with our header, {theirs} with MXNet's"
        )
