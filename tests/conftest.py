"""Fixtures: compiled libraries and programs, models, and the two ways a graph reaches a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import passlib
from plugin_build import PLUGINS, PROGRAMS, Builder

MODELS = Path(__file__).parent / "data" / "mxnet" / "models"


@pytest.fixture(scope="session")
def plugin() -> Iterator[Callable[[str], Path]]:
    """Path of a compiled test library, by its name in plugin_build.PLUGINS."""
    builder = Builder(PLUGINS, ".so")
    yield builder
    builder.close()


@pytest.fixture(scope="session")
def program() -> Iterator[Callable[[str], Path]]:
    """Path of a compiled test program, by its name in plugin_build.PROGRAMS."""
    builder = Builder(PROGRAMS, "")
    yield builder
    builder.close()


@pytest.fixture(scope="session")
def load_plugin(plugin: Callable[[str], Path]) -> Callable[[str], passlib.library.Library]:
    """Load a test library, by name."""
    return lambda name: passlib.library.load(plugin(name), verbose=False)


@pytest.fixture(params=["direct", "json"])
def handover(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with the graph handed over as an object, and again as JSON text."""
    way: str = request.param
    monkeypatch.setenv("PASSLIB_FORCE_JSON", "1" if way == "json" else "0")
    return way


@pytest.fixture
def resnet() -> passlib.symbol.Symbol:
    """A small residual network."""
    return passlib.sym.load(MODELS / "resnet_v1_small-symbol.json")
