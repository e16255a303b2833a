"""Pipelines in a process of their own: crashes, exits, hangs, memory, and playing them back."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
from commands import passlib_command
from passlib.errors import FormatError, LoadError, PipelineError, UnsupportedError
from passlib.passes import Timing
from passlib.passes.isolation import IsolatedError, Reproducer, play
from passlib.passes.rules import load_passes
from plugin_build import compile_to
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


@pl.rewrite("broadcast_mul(a, b)", dialects=["mxnet"])
def isolated_rule(m: pl.Match) -> object:
    """Makes a sum of a product."""
    return m.op("broadcast_add", m.a, m.b)
'''


@pytest.fixture(scope="session")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passes") / "isolated_passes.py"
    path.write_text(PASSES, "utf-8")
    load_passes(path)
    pl.library.load_standard()
    return path


@pytest.fixture
def model() -> pl.Model:
    symbol = pl.sym.broadcast_mul(pl.sym.var("x"), pl.sym.var("w"), name="y")
    return pl.Model(symbol, {"w": np.arange(3, dtype=np.float32).reshape(1, 3)})


@pytest.mark.parametrize("text", ["removeDeadNodes, repeat<2>(isolated_double)", "isolated_rule"])
def test_the_result_is_that_of_this_process(model: pl.Model, passes: Path, text: str) -> None:
    pipeline = pl.Pipeline(text)
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
        ("isolated_hang", {"timeout": 6}, "timed out after 6 s"),
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
    result = passlib_command(
        "run", folder, "--trust", "--timeout", str(settings.get("timeout", 120))
    )
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
        with pytest.raises(UnsupportedError, match="does not support instruments"):
            pl.Pipeline("").run(model, [Timing()], isolate=True)

    def test_limits_without_isolation(self, model: pl.Model) -> None:
        with pytest.raises(UnsupportedError, match="need isolate=True"):
            pl.Pipeline("").run(model, timeout=3)

    def test_a_function_that_stands_in_no_file(self, model: pl.Model) -> None:
        space = {"pl": pl}
        exec("def nowhere(graph: 'pl.Graph') -> None: pass", space)
        pl.graph_pass(space["nowhere"])  # type: ignore[type-var]
        with pytest.raises(UnsupportedError, match=r"'nowhere'.*has no source file"):
            pl.Pipeline("nowhere").run(model, isolate=True)

    def test_a_folder_that_is_no_reproducer(self, tmp_path: Path) -> None:
        (tmp_path / "reproducer.json").write_text("{}", "utf-8")
        with pytest.raises(FormatError, match="not a reproducer"):
            play(tmp_path)
        assert passlib_command("run", tmp_path).returncode == 3
        assert passlib_command("run", tmp_path / "x").returncode == 1

    def test_a_library_that_changed(
        self, model: pl.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        path = tmp_path / "changing.py"
        path.write_text(PASSES.replace("isolated_", "changing_"), "utf-8")
        load_passes(path)
        with pytest.raises(IsolatedError) as caught:
            pl.Pipeline("changing_exit").run(model, isolate=True)
        path.write_text(PASSES, "utf-8")
        with pytest.raises(LoadError, match="changed since the reproducer was written"):
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


CRASHING = """
#include <cstdlib>
#include "lib_api.h"

using namespace mxnet::ext;

static const int ended = [] { std::abort(); return 0; }();

MXReturnValue initialize(int) { return MX_SUCCESS; }

static MXReturnValue nothing(Graph*, const std::unordered_map<std::string, std::string>&) {
  return MX_SUCCESS;
}
REGISTER_PASS(isolatedConstructor).setBody(nothing);
"""


def test_a_static_constructor_that_crashes(model: pl.Model, tmp_path: Path) -> None:
    (tmp_path / "crashing.cc").write_text(CRASHING, "utf-8")
    library = tmp_path / "libcrashing.so"
    compile_to(
        library,
        ("g++", "-std=c++17", "-shared", "-fPIC", "-I", pl.get_include()),
        [tmp_path / "crashing.cc"],
    )
    model.save(tmp_path / "m-symbol.json")
    given = ("-l", library, "--passes", "isolatedConstructor")
    for more in ((), ("--isolate",), ("--timeout", "60"), ("--jobs", "1")):
        ended = passlib_command("opt", "m-symbol.json", "-o", "out", *given, *more, folder=tmp_path)
        assert ended.returncode == 1, ended.stderr
        assert "a static initializer failed: it ended the process by a signal" in ended.stderr
        assert "libcrashing.so" in ended.stderr


@pytest.fixture
def left(model: pl.Model, tmp_path: Path) -> Path:
    """Return the reproducer of a pass that says that it ran by making a file."""
    path = tmp_path / "telling.py"
    path.write_text(
        "import passlib as pl, pathlib\n"
        f"pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
        "@pl.graph_pass\n"
        "def isolated_telling(graph: pl.Graph) -> None:\n"
        '    """Tells that it ran."""\n',
        "utf-8",
    )
    folder = tmp_path / "left"
    folder.mkdir()
    Reproducer.write(folder, model, [str(path)], "isolated_telling", {}, None)
    return folder


def on_a_terminal(*arguments: object, answer: bytes) -> tuple[int, str]:
    """Run the command with a terminal, on which somebody answers."""
    own, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "passlib", *map(str, arguments)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.write(own, answer)
    said = process.communicate(timeout=100)[0].decode()
    os.close(own)
    os.close(terminal)
    return process.returncode, said


def test_code_runs_only_if_it_is_trusted(left: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    asked = passlib_command("run", left)
    assert (asked.returncode, ran.exists()) == (1, False)
    assert "telling.py" in asked.stderr
    assert "--trust" in asked.stderr
    status, said = on_a_terminal("run", left, answer=b"n\n")
    assert (status, ran.exists()) == (1, False)
    assert "[y/N]" in said
    assert on_a_terminal("run", left, answer=b"y\n")[0] == 0
    assert ran.exists()
    ran.unlink()
    before = sorted(path.relative_to(left) for path in left.rglob("*"))
    assert passlib_command("run", left, "--trust").returncode == 0
    assert ran.exists()
    assert sorted(path.relative_to(left) for path in left.rglob("*")) == before


def test_links_of_a_reproducer_are_not_written_through(left: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("result", "answer", "progress", "output.txt", "pid", "status", "job"):
        (left / name).symlink_to(outside if name == "result" else outside / name)
    assert passlib_command("run", left, "--trust").returncode == 0
    assert list(outside.iterdir()) == []


WRONG: dict[str, tuple[str, Any]] = {
    "an absolute model": ("model", "/etc/hostname"),
    "a model elsewhere": ("model", "model/../../outside"),
    "a model that is a number": ("model", 3),
    "a model with a null byte": ("model", "a\0b"),
    "a library elsewhere": ("sources", [["/tmp/../etc/hostname", "0"]]),
    "a relative library": ("sources", [["libx.so", "0"]]),
    "sources that are a text": ("sources", "libx.so"),
    "sources that are numbers": ("sources", [[1, 2]]),
    "sources of three": ("sources", [["/a", "b", "c"]]),
    "no sources": ("sources", None),
    "a pipeline that is a list": ("pipeline", ["a"]),
    "a pipeline that is no pipeline": ("pipeline", "a{"),
    "inference of another name": ("inference", {"isolate": True}),
    "inference of another type": ("inference", {"shapes": 7}),
    "inference that is a list": ("inference", [1]),
    "memory that is a text": ("memory", "much"),
    "too much memory": ("memory", 1 << 70),
    "less than no memory": ("memory", -1),
    "a path that is a text": ("path", "/tmp"),
    "a path of numbers": ("path", [1]),
    "versions that are a list": ("versions", []),
    "another member": ("more", 1),
    "a dialect that nobody has": ("dialect", "x"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_reproducer_with_a_wrong_description(what: str, left: Path, tmp_path: Path) -> None:
    name, value = WRONG[what]
    facts = json.loads((left / "reproducer.json").read_text("utf-8"))
    (left / "reproducer.json").write_text(json.dumps({**facts, name: value}), "utf-8")
    found = passlib_command("run", left, "--trust", timeout=60)
    assert found.returncode in (1, 2, 3)
    assert "Traceback" not in found.stderr
    assert found.stderr.startswith("passlib run: ")
    with pytest.raises(pl.PasslibError):
        play(left)


def test_a_reproducer_of_a_machine_with_other_folders(left: Path) -> None:
    facts = json.loads((left / "reproducer.json").read_text("utf-8"))
    facts["path"] = ["/elsewhere/lib/python3"]
    (left / "reproducer.json").write_text(json.dumps(facts), "utf-8")
    found = passlib_command("run", left, "--trust", timeout=60)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("content", [b"", b"[", b"[" * 100_000, b"null", b"3", b"\xff"])
def test_a_reproducer_that_is_no_json(content: bytes, left: Path) -> None:
    (left / "reproducer.json").write_bytes(content)
    with pytest.raises(FormatError):
        play(left)


@pytest.mark.parametrize("name", ["description", "model", "source"])
def test_a_pipe_in_a_reproducer(name: str, left: Path) -> None:
    held = Reproducer.read(left)
    path = {
        "description": left / "reproducer.json",
        "model": left / held.model,
        "source": Path(held.sources[0][0]),
    }[name]
    path.unlink()
    os.mkfifo(path)
    found = passlib_command("run", left, "--trust", timeout=60)
    assert (found.returncode, "Traceback" in found.stderr) in ((1, False), (3, False)), found.stderr
