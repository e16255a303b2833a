"""Every command that takes a model, on models of every dialect."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib as pl
from nnvm_files import text_of
from onnx_models import CHAIN, save
from passlib.cli import main
from places import DATA

Printed = Callable[..., str]
Given = tuple[str, str, str, list[str]]
"""Dialect and path of a model, the name of a result, and further options."""

PASSES = '''
import passlib as pl

@pl.graph_pass
def drop_activation(graph: pl.Graph) -> None:
    """Takes the first operator out that has an input and one output that another node reads."""
    for node in graph.sorted():
        if node.op in ("Relu", "relu", "Activation", "Gelu"):
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)
            return
'''

NNVM = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "exp", "name": "e", "inputs": [[0, 0, 0]]},
        {"op": "negative", "name": "n", "inputs": [[1, 0, 0]]},
        {"op": "relu", "name": "r", "inputs": [[2, 0, 0]]},
        {"op": "block_grad", "name": "y", "inputs": [[3, 0, 0]]},
    ],
    "arg_nodes": [0],
    "node_row_ptr": [0, 1, 2, 3, 4, 5],
    "heads": [[4, 0, 0]],
}


def onnx_model(folder: Path) -> Path:
    return save(CHAIN, folder / "model.onnx")


def nnvm_model(folder: Path) -> Path:
    path = folder / "model.json"
    path.write_bytes(text_of(NNVM))
    return path


def copied(name: str) -> Callable[[Path], Path]:
    """Return what copies the files of a model of the test data."""

    def copy(folder: Path) -> Path:
        for path in (DATA / name).parent.glob(f"{Path(name).name.partition('.')[0]}*"):
            shutil.copy(path, folder)
        return folder / Path(name).name

    return copy


MODELS: dict[str, tuple[Callable[[Path], Path], str, list[str]]] = {
    "onnx": (onnx_model, "out.onnx", []),
    "mxnet": (copied("mxnet/models/resnet_v1_small"), "out", ["--shape", "data:1,3,32,32"]),
    "nnvm": (nnvm_model, "out.json", ["--shape", "x:2,3"]),
    "ark": (copied("ark/gen_seed-mlp_softmax.full.json"), "out.json", []),
    "dlprim": (copied("dlprim/onnxcpp_resblock.json"), "out.json", []),
}
"""The maker of a model, the name of a result, and the options for inputs that it does not state."""


@pytest.fixture(scope="session")
def passes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file with a pass; one for all, as a name is registered once."""
    path = tmp_path_factory.mktemp("passes") / "every_dialect.py"
    path.write_text(PASSES, "utf-8")
    return str(path)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    make, out, shapes = MODELS[request.param]
    monkeypatch.chdir(tmp_path)
    return request.param, str(make(tmp_path)), out, shapes


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Printed:
    """Return what runs a command, checks its exit code, and returns what it printed."""

    def run(*arguments: str, status: int = 0) -> str:
        assert main(arguments) == status, capfd.readouterr()
        out, err = capfd.readouterr()
        assert err == ""
        return out

    return run


def graph_file(out: str) -> str:
    return out if Path(out).suffix else f"{out}-symbol.json"


def test_inspect_and_validate(model: Given, printed: Printed) -> None:
    dialect, path, _, _ = model
    facts = json.loads(printed("inspect", path, "--json"))
    loaded = pl.load(path)
    operators = [node.op for node in loaded.symbol.nodes() if not node.is_variable]
    assert facts["dialect"] == dialect
    assert facts["nodes"] == len(operators) == sum(facts["operators"].values())
    assert facts["weights"] == len({**loaded.args, **loaded.aux})
    rows = json.loads(printed("inspect", path, "--ops", "--json"))
    assert {row["operator"] for row in rows} == {*operators}
    assert len(json.loads(printed("inspect", path, "--weights", "--json"))) == facts["weights"]
    name = next(node.name for node in loaded.symbol.nodes() if not node.is_variable)
    assert json.loads(printed("inspect", path, "--node", name, "--json"))["name"] == name
    shapes = json.loads(printed("inspect", path, "--shapes", "--json"))
    assert {row["operator"] for row in shapes} <= {None, *facts["operators"]}
    assert all(row["name"] for row in shapes)
    assert json.loads(printed("validate", path, "--json")) == [{"file": path, "problems": []}]


@pytest.mark.sample(0)
def test_opt(model: Given, passes: str, printed: Printed) -> None:
    _, path, out, shapes = model
    more = ["--check", "1", "--check-each", "--verify-each", "--report", "r.html", "--dump", "d"]
    (facts,) = json.loads(printed("opt", path, "-o", out, *more, *shapes, "--json"))
    assert facts["differences"] == []
    assert Path("r.html").exists()
    given = ("opt", path, "-o", out, "-l", passes, "--passes", "drop_activation")
    for option in (["--time"], ["--isolate", "--timeout", "100"], ["--rewrite-limit", "1"]):
        assert "total" in printed(*given, *option)
    assert len(pl.load(out).symbol.nodes()) < len(pl.load(path).symbol.nodes())


@pytest.mark.sample(0)
def test_questions(model: Given, passes: str, printed: Printed) -> None:
    dialect, path, out, shapes = model
    printed("convert", path, "converted.onnx", *shapes)
    if dialect != "onnx":
        assert pl.load("converted.onnx").dialect == "onnx"
    found = json.loads(printed("compare", path, "converted.onnx", *shapes, "-n", "1", "--json"))
    assert found["equal"]
    given = ("-l", passes, "--passes", "drop_activation")
    printed("opt", path, "-o", out, *given)
    found = json.loads(printed("compare", path, out, *shapes, "--per-node", "--json", status=4))
    assert found["first_difference"] is not None
    removed = json.loads(printed("diff", path, out, "--format", "json"))["removed"]
    assert {each["operator"] for each in removed} & {"Relu", "relu", "Activation", "Gelu"}
    for command in (("diff", path, out), ("view", path)):
        assert printed(*command, "-o", "page.html") == "page.html\n"
    guilty = json.loads(printed("bisect", path, *given, "--check", *shapes, "-o", out, "--json"))
    assert guilty["step"] == "drop_activation"
    gone = {text for each in guilty["rewrites"] for text in each["removed"]}
    assert gone == {
        f"{each['name']} ({each['operator']})" for each in removed if each["operator"] != "Tensor"
    }
    small = json.loads(printed("reduce", path, *given, "--check", *shapes, "-o", out, "--json"))
    assert small["nodes"]["after"] <= 2
    assert small["files"][0] == graph_file(out)
    test = "test -s {} && exit 1"
    small = json.loads(printed("reduce", path, "--test", test, *shapes, "-o", out, "--json"))
    assert small["nodes"]["after"] == 1


NOOP = '''
import passlib as pl

@pl.graph_pass
def drop_noop(graph: pl.Graph) -> None:
    """Takes Noop out, which keeps alive what it reads."""
    for node in graph.sorted():
        if node.op == "Noop":
            graph.remove(node)
'''


def test_a_result_that_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    """The numbers are right, but ARK's files need the nodes, which is the fault then."""
    monkeypatch.chdir(tmp_path)
    path = str(copied("ark/gen_seed-mlp_softmax.full.json")(tmp_path))
    (tmp_path / "noop.py").write_text(NOOP, "utf-8")
    given = (path, "-l", "noop.py", "--passes", "drop_noop", "--check", "-o", "out.json")
    guilty = json.loads(printed("bisect", *given, "--json"))
    assert guilty["refusal"].startswith("the pass removed nodes with side effects: 'noop'")
    only = {"removed": ["noop (Noop)"], "added": [], "changed": [], "place": ""}
    assert guilty["rewrites"] == [only]
    assert "its result cannot be saved: the pass removed nodes" in printed("bisect", *given)
    small = json.loads(printed("reduce", *given, "--json"))
    assert small["nodes"]["after"] == 1
