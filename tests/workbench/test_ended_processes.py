"""``bisect`` and ``reduce`` where a pass crashes, exits or hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

import passlib as pl
from commands import passlib_command
from passlib.passes.isolation import IsolatedError
from passlib.passes.rules import load_passes
from passlib.workbench import Differs, PipelineFails, bisect, drawn, reduce
from planted_faults import block_model

PASSES = '''
import ctypes
import os
import signal
import time

import passlib as pl


def subtracts(graph: pl.Graph) -> bool:
    return any(node.op == "Sub" for node in graph.sorted())


@pl.graph_pass
def ended_right(graph: pl.Graph) -> None:
    """Changes nothing that counts."""
    for node in graph.sorted():
        if node.op == "Relu":
            node.op, node.attrs["alpha"] = "LeakyRelu", "0.0"


@pl.graph_pass
def ended_wrong(graph: pl.Graph) -> None:
    """Swaps the inputs of the subtraction."""
    node = graph.find("subtract")
    graph.set_inputs(node, list(reversed(node.inputs)))


@pl.graph_pass
def ended_by_a_crash(graph: pl.Graph) -> None:
    """Crashes on Sub."""
    if subtracts(graph):
        if "PASSLIB_SANITIZED" in os.environ:
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # a sanitizer's handler exits
        ctypes.string_at(0)


@pl.graph_pass
def ended_by_itself(graph: pl.Graph) -> None:
    """Exits on Sub."""
    if subtracts(graph):
        os._exit(7)


@pl.graph_pass
def ended_by_the_clock(graph: pl.Graph) -> None:
    """Hangs on Sub."""
    if subtracts(graph):
        time.sleep(1000)
'''

ENDS = {
    "ended_by_a_crash": ("crashed with signal SIGSEGV", "SIGSEGV", None),
    "ended_by_itself": ("ended its process with exit status 7", "exit status 7", None),
    "ended_by_the_clock": ("timed out after 5 s", "time", 5.0),
}
"""Each pass with its message, what `IsolatedError.how` says, and the time that it gets."""


@pytest.fixture(scope="session")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passes") / "ended_passes.py"
    path.write_text(PASSES, "utf-8")
    load_passes(path)
    return path


@pytest.fixture
def reproducers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which reproducers are made."""
    folder = tmp_path / "reproducers"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ENDS)
def test_bisect_names_the_step(name: str, passes: Path, reproducers: Path, tmp_path: Path) -> None:
    message, how, timeout = ENDS[name]
    model = block_model(tmp_path / "model.onnx", 3)
    pipeline = pl.Pipeline(["ended_right", name, "ended_right"])
    found = bisect(model, pipeline, Differs(model), isolate=True, timeout=timeout)
    assert (found.step, found.number, found.rewrites) == (name, 2, ())
    assert found.library.startswith(passes.stem)
    assert found.runs <= 2
    assert message in str(found)
    cause = found.error.__cause__
    assert isinstance(cause, IsolatedError)
    assert (cause.step, cause.number, cause.how) == (name, 2, how)
    assert [str(path) for path in reproducers.iterdir()] == [cause.folder]
    assert any(node.op == "LeakyRelu" for node in found.before.symbol.nodes())


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ENDS)
def test_reduce_leaves_the_node(name: str, passes: Path, reproducers: Path, tmp_path: Path) -> None:
    _, how, timeout = ENDS[name]
    model = block_model(tmp_path / "model.onnx", 1)
    inputs = drawn(model, None, 1)[0]
    pipeline = pl.Pipeline(["ended_right", name])
    failing = PipelineFails(pipeline, model, inputs, isolate=True, timeout=timeout)
    assert failing.what == f"{name}: {how}"
    found = reduce(model, failing, inputs)
    assert [n.op for n in found.model.symbol.nodes() if not n.is_variable] == ["Sub"]
    assert list(reproducers.iterdir()) == []


def test_a_wrong_step_before_a_crash_is_the_guilty_one(
    passes: Path, reproducers: Path, tmp_path: Path
) -> None:
    model = block_model(tmp_path / "model.onnx", 3)
    pipeline = pl.Pipeline("ended_right, ended_wrong, ended_by_a_crash")
    found = bisect(model, pipeline, Differs(model), isolate=True)
    assert (found.step, found.number, len(found.rewrites)) == ("ended_wrong", 2, 1)


def test_simplify_in_a_process_of_its_own(tmp_path: Path) -> None:
    model = block_model(tmp_path / "model.onnx", 3)
    for pipeline in (pl.Pipeline("simplify"), pl.Pipeline("simplify{skip=[foldLinear]}")):
        here, there = pipeline.run(model), pipeline.run(model, isolate=True, timeout=100)
        changes = "nodes: 0 removed, 0 added, 0 changed; weights: 0 changed"
        assert str(pl.workbench.diff(here.model, there.model)) == changes
        assert [step.text for step in there.steps] == [step.text for step in here.steps]
    with pytest.raises(pl.UnsupportedError, match="need isolate=True"):
        pl.Pipeline("simplify").run(model, timeout=1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ENDS)
def test_the_commands(name: str, passes: Path, tmp_path: Path) -> None:
    message, _, timeout = ENDS[name]
    block_model(tmp_path / "model.onnx", 1)
    given = ["model.onnx", "-l", passes, "--passes", f"ended_right, {name}", "--check"]
    given += ["--timeout", timeout] if timeout else []
    found = passlib_command("bisect", *given, folder=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert f"guilty: step 2, {name}, of {passes.stem}" in found.stdout
    assert message in found.stdout
    found = passlib_command("reduce", *given, "-o", "small.onnx", folder=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    small = pl.load(tmp_path / "small.onnx")
    assert [n.op for n in small.symbol.nodes() if not n.is_variable] == ["Sub"]
