"""Batches: broken models stop nothing, and a batch that was ended goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from batch_models import write_models, write_passes
from commands import passlib_command
from onnx_models import CHAIN, save
from passlib.passes.rules import load_passes
from passlib.workbench import Request, batch
from passlib.workbench.batch import Journal, Outcome


def lines_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "batch.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def reproducers() -> Iterator[None]:
    """Remove the folders that failures leave."""
    yield
    for message in _messages:
        folder = Path(message.rpartition("passlib run ")[2])
        if folder.name.startswith("passlib-reproducer-"):
            subprocess.run(["rm", "-r", str(folder)], check=False)
    _messages.clear()


_messages: list[str] = []


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("count", "crash", "hang", "damaged"), [(60, 2, 1, 1), (200, 5, 2, 3)], ids=["60", "200"]
)
def test_many_models_and_a_kill(
    count: int, crash: int, hang: int, damaged: int, tmp_path: Path, reproducers: None
) -> None:
    """Some crash, hang or are damaged; the batch is killed once on its way."""
    models = write_models(tmp_path, count)
    passes = write_passes(tmp_path)
    done = count - crash - hang - damaged
    assert {kind: len(paths) for kind, paths in models.items()} == {
        "done": done,
        "crash": crash,
        "hang": hang,
        "damaged": damaged,
    }
    every = sorted(path for paths in models.values() for path in paths)
    out = tmp_path / "out"
    command = [
        *(sys.executable, "-m", "passlib", "opt", *map(str, every), "-o", str(out)),
        *("-l", str(passes), "--passes", "shorten"),
        *("--jobs", "3", "--timeout", "15", "--json"),
    ]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not (out / "batch.jsonl").exists() or len(lines_of(out)) < count // 5:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = lines_of(out)
    assert len(before) < count

    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert second.returncode == 2
    outcomes = json.loads(second.stdout)
    assert [outcome["model"] for outcome in outcomes] == list(map(str, every))
    assert Counter(outcome["status"] for outcome in outcomes) == {
        "done": done,
        "failed": count - done,
    }
    assert sum(outcome["earlier"] for outcome in outcomes) == len(before)
    by_model = {outcome["model"]: outcome for outcome in outcomes}
    for kind, word in (
        ("crash", "SIGABRT"),
        ("hang", "timed out after 15 s"),
        ("damaged", "not a model"),
    ):
        for path in models[kind]:
            error = by_model[str(path)]["error"]
            _messages.append(error)
            assert word in error
            assert f"{path}: {error.removeprefix(f'{path}: ')}" in second.stderr
            assert kind == "damaged" or "pass 'shorten' (step 1) of" in error
    for path in models["done"]:
        assert by_model[str(path)]["nodes"] == {"before": 2, "after": 1}
        assert [n.op for n in pl.load(out / path.name).symbol.nodes()] == ["null", "tanh"]
    # Nothing that stands in the journal was done twice, and processes of the killed batch are gone.
    lines = lines_of(out)
    assert len({line["model"] for line in lines}) == len(lines) == count
    calls = len((tmp_path / "calls.txt").read_text("utf-8").splitlines())
    assert count - damaged <= calls <= count - damaged + 3

    third = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert all(outcome["earlier"] for outcome in json.loads(third.stdout))
    assert len(lines_of(out)) == count


@pytest.fixture(scope="session")
def shorten(tmp_path_factory: pytest.TempPathFactory) -> pl.Pipeline:
    load_passes(write_passes(tmp_path_factory.mktemp("passes")))
    return pl.Pipeline("shorten")


def test_the_table(tmp_path: Path) -> None:
    """Shapes are by model; a line for each model says why it failed or was skipped."""
    for name, op, value in (("first", "relu", "x"), ("second", "exp", "y")):
        pl.Model(getattr(pl.sym, op)(pl.sym.var(value))).save(tmp_path / name)
    (tmp_path / "notes.md").write_text("# notes\n")
    models = ["first-symbol.json", "second-symbol.json", "notes.md"]
    shapes = ["--shape", "first*=x:2,3", "--shape", "second-symbol.json=y:4"]
    command = ["opt", *models, "-o", "out", "--check", "1", *shapes]
    printed = passlib_command(*command, folder=tmp_path)
    assert printed.returncode == 2
    title, *rows, counts = printed.stdout.splitlines()
    assert title.split() == ["model", "result", "before", "after", "seconds", "reason"]
    path = str(tmp_path / "notes.md")
    assert [row.split()[:4] for row in rows[:2]] == [
        [str(tmp_path / model), "done", "1", "1"] for model in models[:2]
    ]
    assert rows[2].split()[:2] == [path, "failed"]
    assert rows[2].endswith("  this is not a model that passlib reads, but a text file")
    assert rows[3].split()[:3] == ["total", "2", "2"]
    assert counts == "2 done, 1 failed"
    assert printed.stderr.splitlines()[-1].startswith(f"passlib opt: {path}: this is not a model")

    again = passlib_command(*command, folder=tmp_path)
    assert again.returncode == 2
    *_, first, _, third, _, counts = again.stdout.splitlines()
    assert first.endswith("  skipped: unchanged since an earlier run")
    assert "  skipped: unchanged since an earlier run; this is not a model" in third
    assert counts == "2 done, 1 failed; 3 skipped, unchanged since an earlier run"


@pytest.mark.parametrize("pattern", ["first*", "*/first-symbol.json"])
def test_fixed_shapes_are_by_model(pattern: str, tmp_path: Path) -> None:
    onnx_models = {"first": (None, 3), "second": (None, 5)}
    for name, shape in onnx_models.items():
        pl.Model(pl.sym.relu(pl.sym.var("x"))).to_onnx(
            tmp_path / f"{name}.onnx", shapes={"x": shape}
        )
    paths = [str(tmp_path / f"{name}.onnx") for name in onnx_models]
    fixed = pattern.replace("-symbol.json", ".onnx")
    given = ["opt", *paths, "-o", "out", "--fix-shape", f"{fixed}=x:2,3"]
    printed = passlib_command(*given, folder=tmp_path)
    assert printed.returncode == 0, printed.stderr
    found = [pl.load(tmp_path / f"out/{name}.onnx").input_types["x"].shape for name in onnx_models]
    assert found == [(2, 3), (None, 5)]


class TestJournal:
    @pytest.fixture
    def folder(self, tmp_path: Path, shorten: pl.Pipeline) -> Path:
        write_models(tmp_path, 3)
        return tmp_path

    def run(self, folder: Path, request: Request | None = None) -> list[bool]:
        paths = sorted(folder.glob("model*.json"))
        found = batch(paths, pl.Pipeline("shorten"), folder / "out", request=request)
        assert [outcome.status for outcome in found] == ["done"] * len(paths)
        return [outcome.earlier for outcome in found]

    def test_what_changed_is_done_again(self, folder: Path) -> None:
        assert self.run(folder) == [False] * 3
        assert self.run(folder) == [True] * 3
        os.utime(folder / "model001.json")
        assert self.run(folder) == [True, False, True]
        assert self.run(folder, Request(verify_each=True)) == [False] * 3

    def test_a_line_that_was_cut(self, folder: Path) -> None:
        self.run(folder)
        path = folder / "out" / "batch.jsonl"
        text = path.read_text("utf-8")
        path.write_text(text[:-20], "utf-8")
        again = self.run(folder)
        assert sorted(again) == [False, True, True]
        assert sorted(self.run(folder)) == [True, True, True]


def test_two_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [save(CHAIN, tmp_path / name / "model.onnx") for name in ("a", "b")]
    result = passlib_command("opt", *paths, "-o", tmp_path / "out", "--passes", "removeDeadNodes")
    assert result.returncode == 0, result.stderr
    for name in ("a", "b"):
        assert (tmp_path / "out" / name / "model.onnx").exists()


def test_checks_and_pages_of_each_model(tmp_path: Path) -> None:
    paths = [save(CHAIN, tmp_path / f"{name}.onnx") for name in ("one", "two")]
    source = tmp_path / "double.py"
    source.write_text(
        "import passlib as pl\n@pl.graph_pass\ndef double_w(graph: pl.Graph) -> None:\n"
        "    graph.args['w'] = graph.args['w'] * 2\n",
        "utf-8",
    )
    result = passlib_command(
        *("opt", *paths, "-o", tmp_path / "out", "-l", source, "--passes", "double_w"),
        *("--check", "--report", tmp_path / "pages", "--jobs", "2"),
    )
    assert result.returncode == 4
    assert result.stderr.count("different (values)") == 4
    assert not list((tmp_path / "out").glob("*.onnx"))
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {
        "one.onnx.html",
        "two.onnx.html",
    }


def test_a_journal_on_a_full_disk_is_named(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "batch.jsonl")
    outcome = Outcome("m.onnx", "o.onnx", "done", "", 0, (), "key")
    (tmp_path / "batch.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*batch\.jsonl"):
        journal.add(outcome)


def test_an_executor_of_ones_own(tmp_path: Path, shorten: pl.Pipeline) -> None:
    write_models(tmp_path, 4)
    seen = []
    with ThreadPoolExecutor(2) as executor:
        found = batch(
            sorted(tmp_path.glob("model*.json")),
            shorten,
            tmp_path / "out",
            executor,
            progress=lambda outcome, left: seen.append(left),
        )
    assert [outcome.status for outcome in found] == ["done"] * 4
    assert sorted(seen) == [0, 1, 2, 3]


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the package fsspec is not installed")
    memory = fsspec.filesystem("memory")
    model = save(CHAIN, tmp_path / "model.onnx")
    memory.pipe("/models/model.onnx", model.read_bytes())
    pl.library.load_standard()
    monkeypatch.chdir(tmp_path)
    found = batch(
        ["memory://models/model.onnx", "memory://models/missing.onnx"],
        pl.Pipeline("removeDeadNodes"),
        "memory://done",
    )
    assert [outcome.status for outcome in found] == ["done", "failed"]
    assert "missing.onnx" in found[1].error
    (tmp_path / "again.onnx").write_bytes(memory.cat("/done/model.onnx"))
    x = np.ones((2, 4), np.float32)
    one, two = (pl.load(tmp_path / name) for name in ("model.onnx", "again.onnx"))
    np.testing.assert_array_equal(
        one.run({"x": x})["y"].asnumpy(), two.run({"x": x})["y"].asnumpy()
    )


def test_a_scheduler_of_dask(tmp_path: Path, reproducers: None) -> None:
    pytest.importorskip("distributed", reason="the package distributed is not installed")
    models = write_models(tmp_path, 12)
    running = []
    try:
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        running.append(_started(tmp_path, "dask_scheduler", *options))
        address = _address(tmp_path)
        worker = ("dask_worker", address, "--nthreads", "1", "--no-dashboard")
        running += [_started(tmp_path, *worker) for _ in range(2)]
        result = passlib_command(
            *("opt", *sorted(tmp_path.glob("model*.json")), "-o", tmp_path / "out"),
            *("-l", write_passes(tmp_path), "--passes", "shorten", "--json"),
            *("--scheduler", address),
        )
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    outcomes = json.loads(result.stdout)
    assert Counter(each["status"] for each in outcomes) == {"done": 11, "failed": 1}, result.stderr
    failed = next(each for each in outcomes if each["status"] == "failed")
    _messages.append(failed["error"])
    assert failed["model"] == str(models["crash"][0])
    assert "SIGABRT" in failed["error"]


def _started(folder: Path, module: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / f"{module}.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )


def _address(folder: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(r"tcp://\S+", (folder / "dask_scheduler.txt").read_text("utf-8"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError("the scheduler has no address after 60 s")


def test_no_scheduler(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the package distributed is not installed")
    path = save(CHAIN, tmp_path / "model.onnx")
    result = passlib_command(
        "opt", path, "-o", tmp_path / "out", "--scheduler", "tcp:nowhere", "--passes", "foldShapes"
    )
    assert result.returncode == 1
    assert "no dask scheduler answers at tcp:nowhere" in result.stderr
