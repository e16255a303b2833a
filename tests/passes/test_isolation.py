"""Pipelines in a process of their own: crashes, exits, hangs, memory, and playing them back."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from commands import passlib_command
from passlib.errors import FormatError, LoadError, PipelineError, UnsupportedError
from passlib.passes import Timing
from passlib.passes.files import load_file
from passlib.passes.isolation import IsolatedError, play
from sanitized import unless_sanitized

PASSES = '''
import ctypes
import os
import signal
import time

import numpy as np
import passlib as pl


@pl.graph_pass
def isolated_double(graph: pl.Graph) -> None:
    """Doubles the weight."""
    graph.args["w"] = graph.args["w"] * 2


@pl.graph_pass
def isolated_crash(graph: pl.Graph) -> None:
    """Crashes."""
    print("about to crash", flush=True)
    if "PASSLIB_SANITIZED" in os.environ:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # a sanitizer's handler exits
    ctypes.string_at(0)


@pl.graph_pass
def isolated_exit(graph: pl.Graph) -> None:
    """Exits."""
    os._exit(7)


@pl.graph_pass
def isolated_hang(graph: pl.Graph) -> None:
    """Hangs."""
    time.sleep(1000)


@pl.graph_pass
def isolated_memory(graph: pl.Graph) -> None:
    """Takes 64 GiB."""
    np.ones(1 << 33)


@pl.graph_pass
def isolated_error(graph: pl.Graph) -> None:
    """Fails."""
    raise KeyError("on purpose")
'''


@pytest.fixture(scope="session")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passes") / "isolated_passes.py"
    path.write_text(PASSES, "utf-8")
    load_file(path)
    pl.library.load_standard()
    return path


@pytest.fixture
def model() -> pl.Model:
    symbol = pl.sym.broadcast_mul(pl.sym.var("x"), pl.sym.var("w"), name="y")
    return pl.Model(symbol, {"w": np.arange(3, dtype=np.float32).reshape(1, 3)})


def test_the_result_is_that_of_this_process(model: pl.Model, passes: Path) -> None:
    pipeline = pl.Pipeline("removeDeadNodes, repeat<2>(isolated_double)")
    here, there = pipeline.run(model), pipeline.run(model, isolate=True, timeout=100)
    assert np.array_equal(there.model.args["w"], here.model.args["w"])
    assert there.model.symbol.tojson() == here.model.symbol.tojson()
    assert [(s.text, s.modified) for s in there.steps] == [(s.text, s.modified) for s in here.steps]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("isolated_crash", {}, "crashed with signal SIGSEGV"),
        ("isolated_exit", {}, "ended its process with exit status 7"),
        ("isolated_hang", {"timeout": 6}, "was ended after 6 s"),
        pytest.param(
            *("isolated_memory", {"memory": 8 << 30}, "too much memory"),
            marks=unless_sanitized("its own memory is beyond the limit"),
        ),
    ],
)
def test_what_ends_a_process_is_an_error(
    name: str,
    settings: dict[str, float],
    message: str,
    model: pl.Model,
    passes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipeline = pl.Pipeline(f"removeDeadNodes, {name}")
    with pytest.raises(IsolatedError) as caught:
        pipeline.run(model, isolate=True, **settings)
    text = str(caught.value)
    assert message in text
    assert name in text
    assert f"passlib run {caught.value.folder}" in text
    if name == "isolated_crash":
        assert "(step 2)" in text
        assert "about to crash" in text
        assert passes.stem in text
    folder = Path(caught.value.folder)
    facts = json.loads((folder / "reproducer.json").read_text("utf-8"))
    assert facts["pipeline"] == f"removeDeadNodes, {name}"
    digest = hashlib.sha256(passes.read_bytes()).hexdigest()
    assert dict(facts["sources"])[str(passes)] == digest
    assert {*facts["versions"]} == {"passlib", "python", "numpy", "machine"}
    held = pl.load(folder / facts["model"])
    assert held.symbol.tojson() == model.symbol.tojson()
    assert np.array_equal(held.args["w"], model.args["w"])
    result = passlib_command("run", folder, "--timeout", "6")
    assert result.returncode == 2
    assert message.partition(" after")[0] in result.stderr


def test_an_error_of_a_pass_is_that_error(
    model: pl.Model, passes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(PipelineError, match=r"isolated_error, failed.*on purpose") as caught:
        pl.Pipeline("isolated_double, isolated_error").run(model, isolate=True)
    assert caught.value.model is model
    assert isinstance(caught.value.__cause__, pl.PassError)
    assert isinstance(caught.value.__cause__.__cause__, KeyError)
    assert list(tmp_path.iterdir()) == []


class TestRefused:
    def test_instruments(self, model: pl.Model) -> None:
        with pytest.raises(UnsupportedError, match="instruments cannot look on"):
            pl.Pipeline("").run(model, [Timing()], isolate=True)

    def test_limits_without_isolation(self, model: pl.Model) -> None:
        with pytest.raises(UnsupportedError, match="need isolate=True"):
            pl.Pipeline("").run(model, timeout=3)

    def test_a_function_that_stands_in_no_file(self, model: pl.Model) -> None:
        space = {"pl": pl}
        exec("def nowhere(graph: 'pl.Graph') -> None: pass", space)
        pl.graph_pass(space["nowhere"])  # type: ignore[type-var]
        with pytest.raises(UnsupportedError, match=r"'nowhere'.*stands in no file"):
            pl.Pipeline("nowhere").run(model, isolate=True)

    def test_a_folder_that_is_no_reproducer(self, tmp_path: Path) -> None:
        (tmp_path / "reproducer.json").write_text("{}", "utf-8")
        with pytest.raises(FormatError, match="no reproducer"):
            play(tmp_path)
        assert passlib_command("run", tmp_path).returncode == 3
        assert passlib_command("run", tmp_path / "x").returncode == 1

    def test_a_library_that_changed(
        self, model: pl.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        path = tmp_path / "changing.py"
        path.write_text(PASSES.replace("isolated_", "changing_"), "utf-8")
        load_file(path)
        with pytest.raises(IsolatedError) as caught:
            pl.Pipeline("changing_exit").run(model, isolate=True)
        path.write_text(PASSES, "utf-8")
        with pytest.raises(LoadError, match="is not the file that it was"):
            play(Path(caught.value.folder))


def test_ctrl_c_ends_a_pass_that_hangs(model: pl.Model, passes: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "model-symbol.json")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "passlib", "opt", tmp_path / "model-symbol.json"),
            *("-o", tmp_path / "out", "-l", passes, "--passes", "isolated_hang", "--isolate"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        # A shell's background jobs ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("passlib-reproducer-*/progress")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == "passlib opt: interrupted\n"
    assert process.returncode == 130
    assert list(tmp_path.glob("passlib-reproducer-*")) == []


def test_a_reproducer_is_played_from_any_directory(
    model: pl.Model, passes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsolatedError) as failed:
        pl.Pipeline("isolated_exit").run(model, isolate=True)
    folder = Path(failed.value.folder)
    monkeypatch.chdir(folder.parent)
    with pytest.raises(IsolatedError, match="exit status 7"):
        play(Path(folder.name), timeout=20)
