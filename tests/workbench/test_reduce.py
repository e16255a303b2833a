"""Reduced models: sizes of inputs and weights, and nested graphs."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from commands import passlib_command
from onnx_models import CHAIN, FEEDS, TEXTS, save
from passlib.graph.node import Node
from passlib.workbench import CommandFails, CommandIsSlow, Reduced, drawn, reduce, reduce_both
from places import DATA

SCAN = """
<ir_version: 8, opset_import: ["" : 17]>
scan (float[5, 3] x, float[3] s) => (float[3] last, float[5, 3] all)
{
   last, all = Scan <num_scan_inputs = 1,
     body = body (float[3] st, float[3] xi) => (float[3] so, float[3] yo)
     <float[3] w = {1.0, 2.0, 3.0}>
     { a = Mul(xi, w)
       so = Add(st, a)
       yo = Relu(so) }> (s, x)
}
"""

SIZED = """
<ir_version: 8, opset_import: ["" : 17]>
sized (float[6, 4, 8, 8] x) => (float[6, 10] y)
<float[12, 4, 3, 3] w, int64[2] rows = {6, 432}, float[432, 10] m>
{
   c = Conv(x, w)
   r = Relu(c)
   f = Reshape(r, rows)
   y = MatMul(f, m)
}
"""

LONG = """
<ir_version: 8, opset_import: ["" : 17]>
long (float[2] x) => (float[2] y)
{
   a = Neg(x)
   b = Neg(a)
   c = Neg(b)
   d = Neg(c)
   e = Neg(d)
   f = Neg(e)
   y = Abs(f)
}
"""

COMPUTED = """
<ir_version: 8, opset_import: ["" : 13]>
computed (float[2, 6] x) => (float[2, 3, 2] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[2] rest = {3, 2}>
{
   sizes = Shape(x)
   rows = Slice(sizes, zero, one)
   all = Concat <axis = 0> (rows, rest)
   r = Relu(x)
   cut = Reshape(r, all)
   y = Abs(cut)
}
"""


def nodes_of(model: pl.Model) -> Iterator[tuple[Node, bool]]:
    """Iterate over the operators with whether they stand in a nested graph."""
    pending = [(model.symbol, False)]
    while pending:
        symbol, is_inner = pending.pop()
        for node in symbol.nodes():
            if not node.is_variable:
                yield node, is_inner
            pending += [(graph, True) for graph in node.subgraphs]


def has(operator: str, *, nested: bool = False) -> Callable[[pl.Model, Any], bool]:
    """Return whether a model has an operator, in a nested graph if that is wanted."""

    def failing(model: pl.Model, inputs: Mapping[str, Any]) -> bool:
        return any(
            node.op == operator and (is_inner or not nested) for node, is_inner in nodes_of(model)
        )

    return failing


def checked(found: Reduced, path: Path) -> set[str]:
    """Save and check what was found, run it on its inputs, and return its operators."""
    files = found.model.save(path)
    onnx.checker.check_model(files[0], full_check=True)
    pl.load(files[0]).run({name: np.asarray(value) for name, value in found.inputs.items()})
    operators = [node.op for node, _ in nodes_of(found.model)]
    assert len(operators) == found.nodes
    return set(operators)


@pytest.mark.parametrize(
    ("model", "operator", "nested", "left"),
    [
        # The branch taken, and the one that is not, take the place of If.
        ("nested", "Sub", False, {"Sub"}),
        ("nested", "Relu", False, {"Relu"}),
        ("nested", "Mul", False, {"Mul"}),
        ("nested", "Relu", True, {"If", "Relu", "Mul"}),
        ("nested", "Identity", True, {"If", "Identity", "Sub"}),
        # One round takes the place of Loop.
        ("loop", "Add", False, {"Add"}),
        ("loop", "Add", True, {"Constant", "Identity", "Loop", "Add"}),
        ("scan", "Mul", True, {"Scan", "Mul", "Add", "Identity"}),
    ],
)
def test_nested_graphs(
    model: str, operator: str, nested: bool, left: set[str], tmp_path: Path
) -> None:
    loaded = pl.load(save({**TEXTS, "scan": SCAN}[model], tmp_path / "model.onnx"))
    inputs = FEEDS[model][1] if model in FEEDS else drawn(loaded, None, 1)[0]
    found = reduce(loaded, has(operator, nested=nested), inputs)
    assert found.nodes_before == len(list(nodes_of(loaded)))
    assert checked(found, tmp_path / "small.onnx") <= left
    assert found.nodes <= 5


@pytest.mark.parametrize(
    ("wanted", "elements"),
    [({"Conv"}, 2), ({"MatMul"}, 2), ({"Relu"}, 1), ({"Reshape"}, 3), ({"Conv", "MatMul"}, 5)],
)
def test_sizes(wanted: set[str], elements: int, tmp_path: Path) -> None:
    """All inputs and weights together have few elements."""
    generator = np.random.default_rng(0)
    model = onnx.parser.parse_model(SIZED)
    for name, shape in {"w": (12, 4, 3, 3), "m": (432, 10)}.items():
        values = generator.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(model, tmp_path / "model.onnx")
    loaded = pl.load(tmp_path / "model.onnx")

    def failing(candidate: pl.Model, inputs: Mapping[str, Any]) -> bool:
        return wanted <= {node.op for node, _ in nodes_of(candidate)}

    found = reduce(loaded, failing, drawn(loaded, None, 1)[0])
    checked(found, tmp_path / "small.onnx")
    arrays = [*found.inputs.values(), *found.model.args.values()]
    assert sum(np.asarray(array).size for array in arrays) <= elements


def test_sizes_that_attributes_state() -> None:
    model = pl.load(DATA / "mxnet" / "models" / "squeezenet1.1")
    inputs = drawn(model, None, 1, {"data": (1, 3, 224, 224)})[0]
    found = reduce(model, has("Convolution"), inputs)
    (node,) = (node for node, _ in nodes_of(found.model))
    assert node.attrs["num_filter"] == "1"
    assert max(array.size for array in found.model.args.values()) <= 9
    assert max(array.size for array in found.inputs.values()) <= 100
    found.model.run(found.inputs)


def test_a_size_that_the_fault_needs_stays(tmp_path: Path) -> None:
    loaded = pl.load(save(SCAN, tmp_path / "model.onnx"))

    def failing(candidate: pl.Model, inputs: Mapping[str, Any]) -> bool:
        return inputs["x"].shape[0] >= 3

    found = reduce(loaded, failing, drawn(loaded, None, 1)[0])
    assert 3 <= found.inputs["x"].shape[0] <= 5


def test_a_rank_that_inference_does_not_know_is_stated(tmp_path: Path) -> None:
    """Without what computes the sizes, only the recorded value tells how many there are."""
    loaded = pl.load(save(COMPUTED, tmp_path / "model.onnx"))

    def failing(candidate: pl.Model, inputs: Mapping[str, Any]) -> bool:
        return {"Concat", "Reshape"} <= {node.op for node, _ in nodes_of(candidate)}

    found = reduce(loaded, failing, drawn(loaded, None, 1)[0])
    assert checked(found, tmp_path / "small.onnx") == {"Concat", "Reshape"}


def test_values_become_weights_where_inputs_hide_the_fault(tmp_path: Path) -> None:
    """As faults of folding need values that are constant."""

    def fails(model: pl.Model, inputs: Mapping[str, Any]) -> bool:
        operators = [node.op for node in model.symbol.nodes()]
        return "Abs" in operators and set(model.inputs) <= {"x"}

    model = pl.load(save(LONG, tmp_path / "m.onnx"))
    found = reduce(model, fails, {"x": np.array([1, 2], np.float32)})
    assert (found.nodes, found.model.inputs, len(found.model.args)) == (1, [], 1)


def test_text_is_saved_with_the_model(tmp_path: Path) -> None:
    text = "g (string[N] x) => (string[N] y) { a = Identity(x)\n y = Identity(a) }"
    save(f'<ir_version: 8, opset_import: ["" : 17]> {text}', tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=np.array(["a", "bc"]))
    given = ("m.onnx", "--test", "false {}", "--inputs", "in.npz", "-o", "s.onnx")
    result = passlib_command("reduce", *given, "--save-inputs", "s.npz", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    again = passlib_command("compare", "s.onnx", "s.onnx", "--inputs", "s.npz", folder=tmp_path)
    assert again.returncode == 0, again.stderr


CRASHES: dict[str, Callable[[], object]] = {
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "signal": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}


@pytest.mark.parametrize("how", CRASHES)
def test_candidates_that_crash_the_process(how: str) -> None:
    x = pl.sym.var("x", shape=(2, 3))
    symbol = pl.sym.relu(pl.sym.exp(pl.sym.sin(pl.sym.cos(x, name="a"), name="b"), name="c"))
    model = pl.Model(symbol)

    def failing(candidate: pl.Model, inputs: Mapping[str, Any]) -> bool:
        names = {node.name for node in candidate.symbol.nodes()}
        if "b" not in names:
            CRASHES[how]()
        return "c" in names

    inputs = drawn(model, None, 1)[0]
    found = reduce(model, failing, inputs, isolate=True)
    names = {node.name for node in found.model.symbol.nodes() if not node.is_variable}
    assert names == {"b", "c"}


def test_a_model_whose_values_crash_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = pl.load(save(CHAIN, tmp_path / "model.onnx"))
    monkeypatch.setattr("passlib.workbench.shrinking.values_of", lambda *_: os.abort())
    found = reduce(model, lambda candidate, inputs: True, {"x": np.zeros((2, 4))}, isolate=True)
    assert found.nodes == 1


@pytest.mark.parametrize("how", CRASHES)
def test_two_models_whose_test_crashes_the_process(how: str) -> None:
    x = pl.sym.var("x", shape=(2, 3))
    before, after = (
        pl.Model(pl.sym.exp(function(pl.sym.sin(x, name="a"), name="b"), name="c"))
        for function in (pl.sym.relu, pl.sym.abs)
    )

    def failing(one: pl.Model, two: pl.Model, inputs: Mapping[str, Any]) -> bool:
        if any(node.op.lower() == "abs" for node in two.symbol.nodes()):
            CRASHES[how]()
        return False

    found = reduce_both(before, after, failing, isolate=True)
    assert found.after is not None
    names = [node.op for node in found.after.symbol.nodes() if not node.is_variable]
    assert names == ["Abs", "Identity"]


@pytest.mark.parametrize("braces", ["{}", '"{}"', "'{}'"])
def test_a_command_with_quoted_braces(
    braces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    model = pl.load(save(CHAIN, tmp_path / "chain.onnx"))
    assert not CommandFails(f"test -f {braces}")(model)
    assert CommandFails(f"test ! -f {braces}")(model)


def test_errors_of_a_test_arrive(tmp_path: Path) -> None:
    model = pl.load(save(CHAIN, tmp_path / "model.onnx"))
    command = CommandFails("no-such-command {}")
    with pytest.raises(OSError, match="cannot run"):
        reduce(model, lambda candidate, inputs: command(candidate), {}, isolate=True)


class TestSlowCommands:
    @pytest.fixture
    def model(self, tmp_path: Path) -> pl.Model:
        return pl.load(save(LONG, tmp_path / "model.onnx"))

    def test_every_run_is_slow(self, model: pl.Model) -> None:
        assert CommandIsSlow("grep -aq Abs {} && sleep 0.3", 0.3)(model)
        assert not CommandIsSlow("! grep -aq Exp {} && exit 0; sleep 0.3", 60)(model)

    def test_one_slow_run_is_noise(self, model: pl.Model, tmp_path: Path) -> None:
        """The first run alone waits."""
        flag = tmp_path / "flag"
        command = f"test -f {{}}; test -e {flag} || {{ touch {flag}; sleep 3; }}"
        assert not CommandIsSlow(command, 3)(model)
        assert flag.exists()

    def test_a_failing_command_is_not_slow(self, model: pl.Model) -> None:
        assert not CommandIsSlow("test -f {}; sleep 0.3; exit 1", 0.3)(model)

    def test_command_line(self, model: pl.Model, tmp_path: Path) -> None:
        model.save(tmp_path / "model.onnx")
        given = ("--test", "! grep -aq Abs {} || sleep 0.5", "--slower-than", "0.5")
        found = passlib_command("reduce", "model.onnx", *given, "-o", "small.onnx", folder=tmp_path)
        assert (found.returncode, found.stderr) == (0, "")
        small = onnx.load(tmp_path / "small.onnx")
        assert [node.op_type for node in small.graph.node] == ["Abs"]

    def test_a_time_needs_a_command(self, model: pl.Model, tmp_path: Path) -> None:
        given = ("--check", "--slower-than", "1", "-o", "small.onnx")
        found = passlib_command("reduce", "model.onnx", *given, folder=tmp_path)
        assert found.returncode == 1
        assert "--slower-than: give the command with --test" in found.stderr
