"""The rules of the layout, held against the code as parsed: rooms, arrows, sizes, imports."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from places import ROOT
from structure import MODULES, PACKAGE, Import, circles, dotted, imports_of, named_in, parsed

LAYERS: list[set[str]] = [
    {"_core", "errors"},
    {"files"},
    {"arrays", "graph"},
    {"lowering"},
    {"dialects"},
    {"pages"},
    {"library"},
    {"runtime"},
    {"model"},
    {"passes"},
    {"proof"},
    {"workbench"},
    {"cli"},
    {"mxnet"},
    {"families"},
]
"""The rooms from the ground up: a room imports rooms below it, or of its own layer."""

FACES = "faces"
"""The modules next to the rooms that only hand names on."""

WINGS = [name.removesuffix(".dialect") for name in MODULES if name.endswith(".dialect")]
"""The packages of the dialects."""

LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
LEVEL[FACES] = len(LAYERS)

MXNET_FACES = "attribute context contrib executor gluon initializer name random"
"""MXNet's modules whose names stand elsewhere."""

KNOWN_ARROWS = {
    # The operators of these families are to become rules in text.
    *((name, "mxnet") for name in MODULES if name.startswith("passlib.passes.")),
    *((name, "families") for name in MODULES if name.startswith("passlib.passes.")),
    # The method `Rules.prove` calls the room above.
    ("passlib.passes.rules", "proof"),
}
"""Modules of the core, and higher rooms whose passes or dialects they still name in texts."""


MOST_PARAMETERS = 8
HEAVY = (
    "argcomplete",
    "dask",
    "distributed",
    "fsspec",
    "graphviz",
    "h5py",
    "ml_dtypes",
    "onnx",
    "onnxruntime",
    "rich",
    "safetensors",
    "z3",
)
"""Packages that ``import passlib`` must do without."""

ALONE = ("passlib.workbench.certificate_checker", "passlib.workbench.certificate_rules")
"""Modules that use nothing of passlib; others import them where they need them."""


def every_module(rule: Callable[[Any, Path], Any]) -> Callable[[Any], None]:
    """Make one test of a rule that returns what is wrong in a module."""

    def test(self: Any) -> None:
        found = {name: rule(self, path) for name, path in MODULES.items()}
        assert {name: wrong for name, wrong in found.items() if wrong} == {}

    return test


def room_of(module: str) -> str:
    """Return the room of a module; modules at the top of the package are faces or rooms."""
    _, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if room in LEVEL else FACES


class TestArrows:
    def test_every_module_stands_in_a_layer(self) -> None:
        folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
        assert folders - LEVEL.keys() == set()

    @pytest.mark.parametrize(
        "name",
        [
            *(name for name in MODULES if room_of(name) == FACES),
            *(f"passlib.mxnet.{name}" for name in MXNET_FACES.split()),
        ],
    )
    def test_faces_define_nothing(self, name: str) -> None:
        tree = parsed(MODULES[name])
        # `__getattr__` and `__dir__` decide when a module is imported, and what is shown.
        defined = {
            node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        assert defined - {"__dir__", "__getattr__"} == set()

    @every_module
    def test_arrows_point_downward(self, path: Path) -> set[str]:
        own = room_of(dotted(path))
        named = {
            name for name in named_in(path) if (dotted(path), room_of(name)) not in KNOWN_ARROWS
        }
        return {
            module
            for module in {found.module for found in imports_of(path)} | named
            if room_of(module) != own and LEVEL[room_of(module)] > LEVEL[own]
        }

    def test_no_circle_of_modules(self) -> None:
        graph = {
            name: {found.module for found in imports_of(path)} - {name}
            for name, path in MODULES.items()
        }
        assert circles(graph) == []

    def test_no_circle_of_rooms_at_any_depth(self) -> None:
        """Folders and files next to each other: what lies in them counts as theirs."""
        siblings: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name, path in MODULES.items():
            own = [*name.split("."), *(["__init__"] if path.name == "__init__.py" else [])]
            for found in imports_of(path):
                other = found.module.split(".")
                if found.module in MODULES and MODULES[found.module].name == "__init__.py":
                    other.append("__init__")
                depth = 0
                while own[depth] == other[depth] and depth + 1 < min(len(own), len(other)):
                    depth += 1
                if own[depth] != other[depth]:
                    siblings[".".join(own[:depth])][own[depth]].add(other[depth])
        assert {place: circles(graph) for place, graph in siblings.items() if circles(graph)} == {}

    @every_module
    def test_private_names_stay_in_their_room(self, path: Path) -> list[Import]:
        own = room_of(dotted(path))
        return [
            found
            for found in imports_of(path)
            if found.name.startswith("_") and room_of(found.module) not in (own, "_core")
        ]

    @pytest.mark.parametrize("wing", WINGS)
    def test_wings_do_not_know_each_other(self, wing: str) -> None:
        """But NNVM shares operators with MXNet."""
        known = {wing, *(["passlib.mxnet"] if wing == "passlib.families.nnvm" else [])}
        wrong = {
            found.module
            for name, path in MODULES.items()
            if f"{name}.".startswith(f"{wing}.")
            for found in imports_of(path)
            for other in WINGS
            if other not in known and f"{found.module}.".startswith(f"{other}.")
        }
        assert wrong == set()


@pytest.mark.parametrize("wing", WINGS)
def test_wings_have_the_same_rooms(wing: str) -> None:
    folder = MODULES[f"{wing}.dialect"].parent
    rooms = {"dialect", "schema", "reading", "writing", "validation", "lowering"}
    assert rooms - {path.stem for path in folder.iterdir()} == set()


class TestSizes:
    @every_module
    def test_functions_take_few_parameters(self, path: Path) -> dict[str, int]:
        """Where MXNet's public signatures are longer, the class or module says MXNet's names."""
        if room_of(dotted(path)) == "mxnet":
            return {}
        return {
            node.name: count
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.FunctionDef)
            and (count := parameters(node)) > MOST_PARAMETERS
            and (path.name, node.name)
            not in {("graph.py", "optimize_for"), ("function.py", "graph_pass")}
        }


def parameters(function: ast.FunctionDef) -> int:
    """Return the number of parameters of a function, without the object of a method."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


class TestModules:
    @every_module
    def test_heavy_packages_are_imported_lazily(self, path: Path) -> list[str]:
        return [
            name
            for node in parsed(path).body
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if name.split(".")[0] in HEAVY and dotted(path) not in ALONE
        ]

    def test_import_needs_numpy_alone(self) -> None:
        code = (
            "import sys, passlib\n"
            f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
            "from importlib.metadata import packages_distributions\n"
            "tops = {name.split('.')[0] for name in sys.modules} & set(packages_distributions())\n"
            "print(sorted(name for name in tops if not name.startswith('_')))\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        heavy, tops = map(ast.literal_eval, run.stdout.splitlines())
        assert heavy == []
        assert set(tops) <= {"numpy", "passlib"}

    @every_module
    def test_listed_names_are_there(self, path: Path) -> list[str]:
        """Once each."""
        module = importlib.import_module(dotted(path))
        names = getattr(module, "__all__", [])
        twice = {name for name in names if names.count(name) > 1}
        return [name for name in names if not hasattr(module, name) or name in twice]

    @every_module
    def test_modules_begin_alike(self, path: Path) -> list[str]:
        tree = parsed(path)
        missing = [] if ast.get_docstring(tree) else ["a docstring"]
        future = "from __future__ import annotations"
        imports = any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)
        return [*missing, future] if imports and future not in path.read_text("utf-8") else missing

    def test_the_package_shows_its_public_names_alone(self) -> None:
        dunder = {name for name in vars(passlib) if name.startswith("__")}
        assert set(dir(passlib)) == {*passlib.__all__, *dunder}


HOST = [
    "",
    "platform",
    "graph",
    "dialects",
    "onnx",
    "facts",
    "rules",
    "moves",
    "library",
    "mxnet",
    "partition",
    "model",
    "capi",
    "tool",
    "ort",
    "bindings",
]
"""The folders of the host from the ground up, "" being cpp/ itself. The standard passes know the
header alone."""

HEADERS = {path.relative_to(ROOT / "cpp") for path in (ROOT / "cpp").rglob("*.h")}


def folder_of(path: Path) -> str:
    """Return the folder in cpp/ that a file of cpp/ stands in, at any depth."""
    return path.parts[0] if len(path.parts) > 1 else ""


def included(path: Path) -> set[Path]:
    """Return the project's own headers that a source includes, other than the public ones."""
    found = set()
    for name in re.findall(r'^#include "(.*)"', path.read_text("utf-8"), re.M):
        if name in ("lib_api.h", "lib_patterns.h", "passlib.h", "passlib.hpp"):
            continue
        beside = (path.parent / name).resolve()
        inside = beside if beside.exists() else (ROOT / "cpp" / name).resolve()
        found.add(inside.relative_to(ROOT / "cpp"))
    return found


class TestHost:
    @pytest.mark.parametrize(
        "path",
        sorted(path for path in (ROOT / "cpp").rglob("*") if path.suffix in (".cc", ".h")),
        ids=lambda path: str(path.relative_to(ROOT / "cpp")),
    )
    def test_includes_point_downward(self, path: Path) -> None:
        folder = folder_of(path.relative_to(ROOT / "cpp"))
        headers = included(path)
        assert headers <= HEADERS
        allowed = {folder} if folder == "passes" else set(HOST[: HOST.index(folder) + 1])
        assert {folder_of(header) for header in headers} <= allowed

    def test_no_circle_of_includes(self) -> None:
        assert circles({header: included(ROOT / "cpp" / header) for header in HEADERS}) == []

    def test_pybind11_is_for_bindings(self) -> None:
        users = {
            folder_of(path.relative_to(ROOT / "cpp"))
            for path in (ROOT / "cpp").rglob("*.*")
            if "pybind11" in path.read_text("utf-8")
        }
        assert users == {"bindings"}

    def test_the_headers_details_are_its_own(self) -> None:
        """The host uses names of the header only through `mxnet::ext::host` (cpp/header.h)."""
        uses = re.compile(r"(?<!py::)\bdetail\b")
        sources = [path for path in (ROOT / "cpp").rglob("*") if path.suffix in (".cc", ".h")]
        assert len(sources) > 150
        found = {
            str(path.relative_to(ROOT)): uses.findall(path.read_text("utf-8")) for path in sources
        }
        assert {name for name, words in found.items() if words} == {"cpp/header.h"}
        passes = [path for path in sources if "passes" in path.relative_to(ROOT).parts]
        assert [p.name for p in passes if "ext::host" in p.read_text("utf-8")] == []

    def test_header_includes_only_the_standard_library(self) -> None:
        text = (ROOT / "include" / "lib_api.h").read_text("utf-8")
        assert re.findall(r'^#include "(.*)"', text, re.M) == ["lib_patterns.h"]
        names = re.findall(r"^#include <(.*)>", text, re.M)
        assert {name for name in names if "/" in name} == set()


def test_one_version() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.findall(r'^version = "(.*)"', project, re.M) == [passlib.__version__]
    cmake = (ROOT / "CMakeLists.txt").read_text("utf-8")
    assert "project(passlib VERSION ${PASSLIB_VERSION}" in cmake


def test_data_stays_small() -> None:
    size = sum(path.stat().st_size for path in (ROOT / "tests/data").rglob("*") if path.is_file())
    assert size < 10_000_000
