"""Passes with the names of standard passes and pipelines: errors, unless they may replace them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import passlib as pl
from commands import passlib_command
from passlib.errors import PasslibError
from passlib.library import backends
from passlib.passes.rules import load_passes
from plugin_build import INCLUDE, compile_to

WAY_OUT = r"is the name of a standard pass; rename it, or let it .*replace=True \(--override in com"

SOURCE = """
#include "lib_api.h"
using namespace mxnet::ext;
static MXReturnValue run(Graph *, const std::unordered_map<std::string, std::string> &) {
  std::cout << "TEXT\\n";
  return MX_SUCCESS;
}
REGISTER_PASS(NAME).setBody(run);
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""

PYTHON = """
import passlib as pl

@pl.graph_pass(name="NAME")
def own(graph: pl.Graph) -> None:
    print("TEXT")
"""

RULES = """
rule reluOfRelu "Relu of Relu is Relu."
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
"""


def library(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{text}.so"
    source = path.with_suffix(".cc")
    source.write_text(SOURCE.replace("NAME", name).replace("TEXT", text), "utf-8")
    compile_to(path, ("g++", "-shared", "-fPIC", "-std=c++11", "-I", str(INCLUDE)), [source])
    return path


def python_file(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{text}.py"
    path.write_text(PYTHON.replace("NAME", name).replace("TEXT", text), "utf-8")
    return path


def rules_file(folder: Path, name: str, text: str) -> Path:
    (folder / text).mkdir()
    path = folder / text / f"{name}.rules"
    path.write_text(RULES, "utf-8")
    return path


FILES = {"library": library, "python": python_file, "rules": rules_file}


@pytest.fixture(autouse=True)
def no_other_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_backends", {})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    x = pl.sym.var("x")
    return Path(pl.Model(pl.sym.relu(pl.sym.identity(x), name="y")).save(tmp_path / "net")[0])


def test_the_names_are_those_of_the_passes() -> None:
    ours = {name for name in pl.library.passes() if backends.is_one_of_ours(name)}
    assert ours | backends.pipelines().keys() == backends.STANDARD_NAMES


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("name", ["foldConstants", "removeDeadNodes", "simplify", "outline"])
def test_a_file_of_passes(tmp_path: Path, kind: str, name: str) -> None:
    path = FILES[kind](tmp_path, name, f"{kind}-{name}")
    with pytest.raises(PasslibError, match=f"'{name}' {WAY_OUT}"):
        load_passes(path)
    assert backends._backends == {}
    load_passes(path, replace=True)
    assert not backends.is_one_of_ours(name)
    assert pl.library.passes()[name].library == str(path) or kind == "python"


CALLS: dict[str, Callable[[bool], object]] = {
    "graph_pass": lambda r: pl.graph_pass(lambda graph: None, name="foldShapes", replace=r),
    "rewrite": lambda r: pl.rewrite("relu(x)", name="foldShapes", replace=r)(lambda x: x),
    "Rules": lambda _: pl.Rules(RULES, name="foldShapes"),
}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("is_late", [False, True])
def test_a_pass_in_python(kind: str, is_late: bool) -> None:
    if is_late:
        pl.library.passes()
    with pytest.raises(PasslibError, match=WAY_OUT):
        CALLS[kind](False)
    assert backends.is_one_of_ours("foldShapes")
    with backends.replacing():
        CALLS[kind](False)
    assert not backends.is_one_of_ours("foldShapes")


@pytest.mark.parametrize("kind", ["library", "python"])
@pytest.mark.parametrize("how", [[], ["--isolate"], ["--jobs", "1"]], ids=["here", "child", "jobs"])
def test_the_command(tmp_path: Path, model: Path, kind: str, how: list[str]) -> None:
    path = FILES[kind](tmp_path, "removeNoOps", f"own-{kind}")
    output = tmp_path / ("out" if how == ["--jobs", "1"] else "out-symbol.json")
    words = ("opt", model, "-o", output, "--passes", "removeNoOps", "-l", path, *how)
    found = passlib_command(*words)
    assert (found.returncode, output.exists()) == (1, False)
    assert "'removeNoOps' is the name of a standard pass" in found.stderr
    assert "--override" in found.stderr
    found = passlib_command(*words, "--override")
    assert (found.returncode, found.stderr) == (0, "")
    assert output.exists()
    made = output / model.name if output.is_dir() else output
    assert "identity" in made.read_text() or "_copy" in made.read_text()


def test_two_files_of_the_command(tmp_path: Path, model: Path) -> None:
    files = [word for kind in FILES for word in ("-l", FILES[kind](tmp_path, "other", kind))]
    for pair in (files[:4], files[2:]):
        words = ("opt", model, "-o", tmp_path / "out-symbol.json", "--passes", "other", *pair)
        found = passlib_command(*words)
        assert found.returncode == 1
        assert "the pass 'other' is already registered by" in found.stderr
        assert "--override" in found.stderr
    found = passlib_command(*words[:-4], *files[:4], "--override")
    assert "python\n" in found.stdout
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("first", ["one", "two"])
def test_an_isolated_run_has_the_same_passes(tmp_path: Path, first: str) -> None:
    """Whichever order the names of the files have."""
    second, log = {"one": "two", "two": "one"}[first], tmp_path / "log"
    body = PYTHON.replace('print("TEXT")', f'os.system("echo TEXT >> {log}")')
    body = body.replace("import", "import os\nimport", 1)
    for text, names in ((first, ["shared", "single"]), (second, ["shared", "removeNoOps"])):
        path = tmp_path / f"{text}.py"
        path.write_text(
            "".join(
                body.replace("NAME", name).replace("TEXT", f"{text}-{name}").replace("own", name)
                for name in names
            ),
            "utf-8",
        )
        load_passes(path, replace=True)
    net = pl.Model(pl.sym.relu(pl.sym.identity(pl.sym.var("x")), name="y"))
    for isolate in (False, True):
        log.write_text("", "utf-8")
        pl.Pipeline("shared,single,removeNoOps,foldConstants").run(net, isolate=isolate)
        ran = [f"{second}-shared", f"{first}-single", f"{second}-removeNoOps"]
        assert log.read_text("utf-8").splitlines() == ran
