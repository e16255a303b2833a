"""Fixtures: compiled libraries and programs, models, and the ways a graph is passed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import passlib
from places import DATA, TESTS
from plugin_build import PLUGINS, PROGRAMS, Builder, compile_to, plain_operator

# Machines that run tests are often busy, so an example's duration means nothing.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

MODELS = DATA / "mxnet" / "models"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        type=int,
        metavar="N",
        help="of a test with more than N cases, run about N, evenly spread over them",
    )
    parser.addoption("--rest", action="store_true", help="run the cases that --sample leaves out")
    parser.addoption(
        "--part",
        default="0/1",
        metavar="K/N",
        help="of the cases that --rest runs, run every Nth, from the Kth on, counted from 0",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take a sample of the cases of large tables, or the rest, if that is asked for."""
    limit = config.getoption("sample")
    if not limit:
        return
    tables: dict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        tables[item.path, item.nodeid.partition("[")[0]].append(item)
    sample = set[pytest.Item]()
    for cases in tables.values():
        own = cases[0].get_closest_marker("sample")
        most = min(limit, own.args[0]) if own else limit
        sample.update(cases[:: -(-len(cases) // most)] if most else ())
    chosen = sample
    if config.getoption("rest"):
        first, step = map(int, config.getoption("part").split("/"))
        chosen = set([item for item in items if item not in sample][first::step])
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def runs_most(request: pytest.FixtureRequest) -> bool:
    """Whether this run will need most of the libraries and programs."""
    return len({item.path for item in request.session.items}) > 10


@pytest.fixture(scope="session")
def plugin(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Path]]:
    """Return the path of a compiled test library, by its name in plugin_build.PLUGINS."""
    builder = Builder(PLUGINS, ".so", ahead=runs_most(request))
    yield builder
    builder.close()


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Path]]:
    """Return the path of a compiled test program, by its name in plugin_build.PROGRAMS."""
    builder = Builder(PROGRAMS, "", ahead=runs_most(request))
    yield builder
    builder.close()


@pytest.fixture(scope="session")
def load_plugin(plugin: Callable[[str], Path]) -> Callable[[str], passlib.library.Library]:
    """Load a test library, by name."""
    return lambda name: passlib.library.load(plugin(name), verbose=False)


@pytest.fixture(scope="session")
def compile_plain() -> Callable[..., Path]:
    """Compile the operators in plain C with further flags into a folder; ABI 11 by default."""

    def compile_with(folder: Path, *flags: str) -> Path:
        given = flags if any(flag.startswith("-DABI") for flag in flags) else (*flags, "-DABI=11")
        recipe = plain_operator(*given)
        path = folder / ("-".join(flag.lstrip("-D") for flag in given).replace("=", "_") + ".so")
        compile_to(path, recipe.command, [TESTS / source for source in recipe.sources])
        return path

    return compile_with


@pytest.fixture(params=["flat", "json"])
def handover(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with the graph handed over as plain arrays, and as JSON text."""
    way: str = request.param
    monkeypatch.setenv("PASSLIB_HANDOVER", way)
    return way


@pytest.fixture
def resnet() -> passlib.symbol.Symbol:
    """A small residual network."""
    return passlib.sym.load(MODELS / "resnet_v1_small-symbol.json")
