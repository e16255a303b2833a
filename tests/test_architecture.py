"""The rules of the layout: which way dependencies point, how large files get, what import costs."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import passlib
from plugin_build import ROOT

PACKAGE = ROOT / "python" / "passlib"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Layers from the ground up; a module may import from its own layer and those below. What is not
# named here belongs to the layer of the first name that it stands under.
LAYERS: list[tuple[str, ...]] = [
    ("_core", "errors", "node", "_optional", "_atomic", "_collector", "_namespace"),
    ("dialects", "dtypes", "naming", "attribute", "context"),
    ("symbol", "library", "operators", "optimize", "runtime", "infer", "nd"),
    ("nn", "model"),
    ("pipeline", "verify", "isolate"),
    ("cli", "view", "report"),
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SMALL_CORE = ("onnx", "onnxruntime", "ml_dtypes", "safetensors")


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Modules of this package that a module imports, and whether only for the type checker."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield name, id(node) in typing_only


def level_of(module: str) -> int | None:
    parts = module.split(".")
    return LEVEL.get(parts[1]) if len(parts) > 1 and parts[0] == "passlib" else None


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_dependencies_point_downward(path: Path) -> None:
    own = level_of(dotted(path))
    if own is None:
        return
    wrong = []
    for name, typing_only in imports(path):
        level = level_of(name)
        if level is not None and level > own and not typing_only:
            wrong.append(name)
    assert wrong == []


def test_every_layer_is_there() -> None:
    built = {dotted(path).split(".")[1] for path in MODULES if path.parent != PACKAGE.parent
             and dotted(path) != "passlib"}  # fmt: skip
    assert {"errors", "node", "dialects", "symbol", "library", "optimize"} <= built


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_heavy_packages_are_imported_lazily(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    outside = [
        name
        for node in tree.body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.split(".")[0] in SMALL_CORE
    ]
    assert outside == []


def test_import_needs_numpy_alone() -> None:
    code = (
        "import sys, passlib\n"
        f"print([name for name in {SMALL_CORE!r} if name in sys.modules])\n"
        "from importlib.metadata import packages_distributions\n"
        "tops = {name.split('.')[0] for name in sys.modules} & set(packages_distributions())\n"
        "print(sorted(name for name in tops if not name.startswith('_')))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy, tops = map(ast.literal_eval, run.stdout.splitlines())
    assert heavy == []
    assert set(tops) <= {"numpy", "passlib"}


@pytest.mark.parametrize("path", [p for p in MODULES if not p.name.startswith("_")], ids=dotted)
def test_public_module_says_what_is_public(path: Path) -> None:
    module = importlib.import_module(dotted(path))
    names = module.__all__
    assert sorted(set(names)) == sorted(names), "a name stands twice"
    assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_module_begins_as_all_do(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree), "a module needs a docstring"
    if any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body):
        assert "from __future__ import annotations" in path.read_text("utf-8")


def sources() -> list[Path]:
    folders = ("python", "cpp", "tests", "example", "bench")
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cc", ".h", ".c", ".pyi") and path.is_file()
    )


def test_no_file_is_large() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in sources()}
    assert {str(path): n for path, n in lengths.items() if n > 600} == {}
    package = sorted(lengths[path] for path in MODULES)
    assert package[len(package) // 2] < 150


# The host from the ground up; a file includes those of lower layers, and the header.
HOST = [
    {"errors", "output", "graph", "json_objects", "random_states"},
    {"source", "tensors", "library", "check", "partition_graph"},
    {"library_call", "buffer", "partition_order", "partition_cut"},
    {"pass", "custom_op"},
    {"compute", "bindings_common", "partition_library"},
    {"partition_choice"},
    {"partition_groups"},
    {"partition"},
    {"bindings_operator", "bindings_partition"},
    {"bindings"},
]
HOST_LEVEL = {stem: level for level, stems in enumerate(HOST) for stem in stems}


@pytest.mark.parametrize("path", sorted((ROOT / "cpp").glob("*.*")), ids=lambda path: path.name)
def test_includes_point_downward(path: Path) -> None:
    included = re.findall(r'^#include "(?:.*/)?(\w+)\.h"', path.read_text("utf-8"), re.M)
    others = {stem for stem in included if stem not in (path.stem, "lib_api")}
    level = HOST_LEVEL[path.stem]
    allowed = {stem for stem, other in HOST_LEVEL.items() if other < level}
    if level == 0:
        allowed = {"errors"}
    assert others <= allowed


def test_header_includes_only_the_standard_library() -> None:
    text = (ROOT / "include" / "lib_api.h").read_text("utf-8")
    assert re.findall(r'^#include "', text, re.M) == []
    assert {name for name in re.findall(r"^#include <(.*)>", text, re.M) if "/" in name} == set()


def test_one_version() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    cmake = (ROOT / "CMakeLists.txt").read_text("utf-8")
    versions = {
        *re.findall(r'^version = "(.*)"', project, re.M),
        *re.findall(r"^project\(passlib VERSION (\S+)", cmake, re.M),
        passlib.__version__,
    }
    assert len(versions) == 1


def test_data_stays_small() -> None:
    size = sum(path.stat().st_size for path in (ROOT / "tests/data").rglob("*") if path.is_file())
    assert size < 10_000_000
