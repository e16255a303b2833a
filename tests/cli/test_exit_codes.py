"""The exit codes of every command, and that an error is one message on stderr."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from commands import passlib_command
from onnx_models import CHAIN, LOOP, save
from passlib.cli import main
from passlib.cli.command import COMMANDS
from passlib.files.regular import Save
from places import DATA

PASSES = '''
import os

import passlib as pl

@pl.graph_pass
def codes_right(graph: pl.Graph) -> None:
    """Changes nothing."""

@pl.graph_pass
def codes_wrong(graph: pl.Graph) -> None:
    """Doubles the second input of the sum."""
    graph.args["w"] = graph.args["w"] * 2

@pl.graph_pass
def codes_raising(graph: pl.Graph) -> None:
    """Fails."""
    raise ValueError("on purpose")

@pl.graph_pass
def codes_crashing(graph: pl.Graph) -> None:
    """Ends its process."""
    os.abort()

@pl.graph_pass
def codes_renaming(graph: pl.Graph) -> None:
    """Lets go of an output."""
    graph.outputs = graph.outputs[:1]

@pl.graph_pass
def codes_printing(graph: pl.Graph) -> None:
    """Prints more than a buffer holds."""
    print("x" * 100_000)
'''

STATELESS = str(DATA / "mxnet" / "models" / "squeezenet1.1")
"""A model that does not state the shape of its input."""

TEXT = """
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
text (string[N] x) => (int64[N] y)
{
   a = Identity(x)
   y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2]> (a)
}
"""
"""A model whose input is text."""

WRONG = """\
rule codesRule "Relu of Relu is Relu."
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
  example
    y = Relu(Relu(x: float[2]))
    => y = Neg(x)
"""
"""A rule that does not do what its example shows."""

WITH = "-l passes.py --passes"

CODES: list[tuple[str, int, str]] = [
    (f"opt m.onnx -o o.onnx {WITH} codes_right --check", 0, ""),
    ("opt m.onnx", 1, "the following arguments are required: -o"),
    ("opt m.onnx -o o.onnx --passes unknownPass", 1, "there is no pass"),
    ("opt m.onnx -o o.onnx --check --shape y:1", 1, "has no input 'y'"),
    ("opt m.onnx -o o.onnx --timeout soon", 1, "must be a finite number of seconds > 0, not soon"),
    (f"opt {STATELESS} -o o --check", 1, "--shape data:1,3,224,224"),
    (f"opt m.onnx -o o.onnx {WITH} codes_raising", 2, "on purpose"),
    (f"opt m.onnx -o o.onnx {WITH} codes_crashing --isolate", 2, "SIGABRT"),
    (f"opt m.onnx two.onnx -o out {WITH} codes_raising", 2, "on purpose"),
    ("opt bad.onnx -o o.onnx", 3, "bad.onnx"),
    (f"opt m.onnx -o o.onnx {WITH} codes_wrong --check", 4, "results differ"),
    (f"opt m.onnx two.onnx -o out4 {WITH} codes_wrong --check", 4, "different"),
    ("inspect m.onnx", 0, ""),
    ("inspect gone.onnx", 1, "there is no such model"),
    ("inspect bad.onnx", 3, "bad.onnx"),
    ("validate m.onnx", 0, ""),
    ("validate gone.onnx", 1, "there is no such model"),
    ("validate bad.onnx", 3, ""),
    ("lint m.onnx --target opset=21", 0, ""),
    ("lint m.onnx --target opset=1", 3, ""),
    ("lint m.onnx --target opset=99", 1, "no target 'opset=99'"),
    ("lint bad.onnx --target opset=21", 3, "bad.onnx"),
    ("convert m.onnx c.onnx", 0, ""),
    ("convert m.onnx c.onnx --opset x", 1, "argument --opset: must be a whole number, not 'x'"),
    (f"convert {STATELESS} c.onnx", 1, "give the shapes of data"),
    ("convert bad.onnx c.onnx", 3, "bad.onnx"),
    ("extract m.onnx --outputs y -o e.onnx", 0, ""),
    ("extract m.onnx --inputs q -o e.onnx", 3, "inputs: the model has no value 'q'"),
    ("rename m.onnx x=image -o r.onnx", 0, ""),
    ("rename m.onnx q=image -o r.onnx", 3, "no input, weight, node or output 'q'"),
    ("merge m.onnx m.onnx --connect y=x --prefix b_ -o w.onnx", 0, ""),
    ("merge m.onnx m.onnx --connect y=x -o w.onnx", 3, "give a prefix"),
    ("set-shape m.onnx x:batch,4 -o z.onnx", 0, ""),
    ("set-shape m.onnx q:1 -o z.onnx", 3, "the model has no input 'q'"),
    ("set-attr m.onnx Clip_2 __note__=1 -o a.onnx", 0, ""),
    ("set-attr m.onnx Clip q -o a.onnx", 3, "no node 'Clip'"),
    ("set-weight m.onnx w=w.npy -o w.onnx", 0, ""),
    ("set-weight m.onnx q=w.npy -o w.onnx", 3, "the model has no weight 'q'"),
    ("compare m.onnx m.onnx", 0, ""),
    ("compare m.onnx", 1, "the following arguments are required: B"),
    ("compare m.onnx m.onnx -n 0", 1, "-n: must be at least 1"),
    ("compare m.onnx bad.onnx", 3, "bad.onnx"),
    ("compare m.onnx other.onnx", 4, ""),
    ("compare m.onnx other.onnx --per-node --report c.html", 4, ""),
    ("compare m.onnx other.onnx --report gone/c.html", 1, "the folder gone does not exist"),
    (f"bisect m.onnx {WITH} codes_wrong --check", 0, ""),
    (f"bisect m.onnx {WITH} codes_crashing --check", 0, ""),
    (f"bisect m.onnx {WITH} codes_right --check", 5, "nothing fails"),
    ("bisect m.onnx", 1, "give --check or --test"),
    ("bisect bad.onnx --check", 3, "bad.onnx"),
    (f"reduce m.onnx {WITH} codes_wrong --check -o s.onnx", 0, ""),
    ("reduce m.onnx --test 'true {}' -o s.onnx", 5, "nothing fails"),
    ("reduce bad.onnx --test 'true {}' -o s.onnx", 3, "bad.onnx"),
    ("diff m.onnx other.onnx", 0, ""),
    ("diff m.onnx gone.onnx", 1, "there is no such model"),
    ("diff m.onnx bad.onnx", 3, "bad.onnx"),
    ("view m.onnx -o v.html", 0, ""),
    ("view m.onnx -o gone/v.html/", 1, ""),
    ("view bad.onnx", 3, "bad.onnx"),
    ("run reproducer --trust", 2, "SIGABRT"),
    ("run reproducer", 1, "add --trust"),
    ("run gone", 1, "gone"),
    ("run bad.onnx", 1, "bad.onnx"),
    ("new codesPass", 0, ""),
    ("new 9lives", 1, "cannot be the name of a pass"),
    ("build gone.cc", 1, "gone.cc"),
    ("passes -l passes.py codes_right", 0, ""),
    ("passes unknownPass", 1, "there is no pass"),
    ("passes -l gone.so", 1, "gone.so"),
    ("abi gone.so", 1, "gone.so"),
    ("abi bad.onnx", 1, "it is not a shared library"),
    ("rules transposeOfTranspose", 0, ""),
    ("rules unknownRule", 1, "there is no rule or group"),
    ("rules --rules gone.rules", 1, "gone.rules"),
    ("rules --check passes.py", 3, "passes.py, line 2, column 1"),
    ("rules --check wrong.rules", 4, ""),
    ("prove --only identity", 0, ""),
    ("prove --only unknownRule", 1, "there is no rule or group"),
    ("prove gone.rules", 1, "gone.rules"),
    ("prove wrong.rules --jobs 0", 1, "--jobs: must be at least 1"),
    ("prove passes.py", 3, "passes.py, line 2, column 1"),
    ("prove wrong.rules", 0, ""),
    ("opt m.onnx -o o.onnx --certify c.json", 0, ""),
    ("check-certificate m.onnx gone.onnx c.json", 1, "gone.onnx"),
    ("check-certificate m.onnx m.onnx m.onnx", 4, "the certificate is no "),
    ("check-certificate bad.onnx m.onnx m.onnx", 4, "bad.onnx: not an ONNX model"),
]
"""A command, its exit code, and what its message says; empty where there is none on stderr."""

ARGUMENTS: list[tuple[str, int, str]] = [
    ("opt m.onnx -o o.onnx --timeout 0", 1, "must be a finite number of seconds > 0, not 0"),
    ("opt m.onnx -o o.onnx --check --rtol -1", 1, "must be a finite number of at least 0, not -1"),
    ("opt m.onnx -o o.onnx --check --rtol inf", 1, "must be a finite number of at least 0"),
    ("compare m.onnx m.onnx --atol nan", 1, "must be a finite number of at least 0, not nan"),
    ("opt m.onnx -o o.onnx --atol 1", 1, "--atol needs --check"),
    ("opt m.onnx -o o.onnx --shape x:2,4", 1, "--shape needs --check"),
    ("opt m.onnx -o folder --jobs 0", 1, "--jobs: must be at least 1"),
    ("opt m.onnx -o folder", 1, "folder: this is a folder"),
    ("opt m.onnx -o ''", 1, "-o: the name of the file is empty"),
    ("opt m.onnx -o gone/o.onnx", 1, "-o gone/o.onnx: the folder gone does not exist"),
    ("opt m.onnx -o o.onnx --report folder", 1, "--report folder: this is a folder"),
    ("opt m.onnx two.onnx -o m.onnx", 1, "-o m.onnx: expected a folder, found a file"),
    ("opt m.onnx two.onnx -o outs --report m.onnx", 1, "m.onnx: expected a folder, found a file"),
    ("opt m.onnx -o o.onnx --check --shape x:1", 1, "but the model states"),
    ("compare m.onnx loop.onnx", 1, "the models have different inputs"),
    ("compare m.onnx m.onnx --inputs names.npz", 1, "no array for input x of the model, but"),
    ("opt m.onnx -o o.onnx --check --inputs names.npz", 1, "no array for input x"),
    ("bisect m.onnx --check --inputs names.npz", 1, "no array for input x"),
    ("reduce m.onnx --check --inputs names.npz -o s.onnx", 1, "no array for input x"),
    ("compare m.onnx m.onnx --inputs more.npz", 1, "no input 'more'; its inputs are x"),
    ("opt m.onnx -o o.onnx --check --inputs more.npz", 1, "no input 'more'; its inputs are x"),
    ("bisect m.onnx --check --inputs more.npz", 1, "no input 'more'; its inputs are x"),
    ("bisect m.onnx other.onnx --inputs more.npz", 1, "no input 'more'; its inputs are x"),
    ("reduce m.onnx --check --inputs more.npz -o s.onnx", 1, "no input 'more'; its inputs are x"),
    ("opt m.onnx two.onnx -o both --check --inputs more.npz", 0, ""),
    ("compare m.onnx m.onnx --inputs types.npz", 1, "has element type int64"),
    ("compare m.onnx m.onnx --inputs shapes.npz", 1, "has shape (2, 5)"),
    ("compare m.onnx m.onnx --inputs array.npy", 1, "not an .npz file of arrays"),
    ("compare m.onnx m.onnx --inputs m.onnx", 1, "not an .npz file of arrays"),
    ("compare text.onnx text.onnx --inputs objects.npz", 1, "text must be an array of str"),
    ("compare text.onnx text.onnx --inputs text.npz", 0, ""),
    ("opt text.onnx -o o.onnx --check-each", 1, "give inputs"),
    ("opt text.onnx -o o.onnx --check --check-each --inputs text.npz", 0, ""),
    (f"opt m.onnx -o o.onnx {WITH} codes_renaming --check", 4, "the outputs were y, z, and are y"),
    (f"opt m.onnx -o o.onnx {WITH} codes_renaming --check-each", 4, "the outputs were y, z"),
    ("opt m.onnx -o o.onnx --fix-shape x:2,4 --check", 0, ""),
    ("opt m.onnx -o o.onnx --fix-shape x:2,5", 1, "but the model states"),
    ("opt m.onnx -o o.onnx --fix-shape x", 1, "--fix-shape x: write name:1,3,224,224"),
    ("opt m.onnx -o o.onnx --fix-shape x:2,4 --passes removeDeadNodes", 1, "passlib set-shape"),
    ("opt m.onnx -o o.onnx --target onnxruntime --check", 0, ""),
    ("opt m.onnx -o o.onnx --target onnxruntime --passes toHalf", 1, "fuseLayers{target=...}"),
    ("opt m.onnx -o o.onnx --target tensorrt", 1, "invalid choice: 'tensorrt'"),
    ("rename m.onnx x -o r.onnx", 1, "expected OLD=NEW, got 'x'"),
    ("rename m.onnx x=a x=b -o r.onnx", 1, "'x' is given twice"),
    ("set-shape m.onnx x -o z.onnx", 1, "x: write name:batch,3,?,?"),
    ("set-weight m.onnx w=array.npy -o w.onnx", 3, "weight 'w' has shape"),
    ("set-weight m.onnx w=m.onnx -o w.onnx", 3, "not an .npy file of numbers"),
    ("extract m.onnx -o gone/e.onnx", 1, "the folder gone does not exist"),
    ("merge m.onnx m.onnx -o gone/e.onnx", 1, "the folder gone does not exist"),
    ("bisect m.onnx --test 'no-such-command {}'", 1, "the shell cannot run 'no-such-command {}'"),
    ("reduce m.onnx --test './m.onnx {}' -o s.onnx", 1, "the shell cannot run './m.onnx {}'"),
    ("bisect m.onnx --check -o gone/b.onnx", 1, "the folder gone does not exist"),
    ("reduce m.onnx --test 'touch ran; false {}' -o gone/s.onnx", 1, "the folder gone does not"),
    ("reduce m.onnx --test 'touch ran; false {}' -o s.json", 1, ".json is a suffix of"),
    ("reduce m.onnx --test 'touch ran; false {}' -o s.onnx --save-inputs folder", 1, "a folder"),
    ("convert m.onnx folder", 1, "folder: this is a folder"),
    ("convert m.onnx gone/c.onnx", 1, "OUT gone/c.onnx: the folder gone does not exist"),
    ("diff m.onnx m.onnx -o gone/d.html", 1, "the folder gone does not exist"),
    ("view m.onnx -o folder", 1, "-o folder: this is a folder"),
    ("run folder", 1, "folder: not a reproducer"),
]
"""The same for arguments that a command cannot work with, or only just can."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models, a file with passes, and a reproducer."""
    folder = tmp_path_factory.mktemp("codes")
    (folder / "passes.py").write_text(PASSES, "utf-8")
    (folder / "wrong.rules").write_text(WRONG, "utf-8")
    model = pl.load(save(CHAIN, folder / "m.onnx"))
    save(CHAIN, folder / "two.onnx")
    save(LOOP, folder / "loop.onnx")
    save(TEXT, folder / "text.onnx")
    (folder / "folder").mkdir()
    np.savez(folder / "names.npz", q=np.zeros((2, 4), np.float32))
    np.savez(folder / "types.npz", x=np.zeros((2, 4), np.int64))
    np.savez(folder / "shapes.npz", x=np.zeros((2, 5), np.float32))
    np.save(folder / "array.npy", np.zeros((2, 4), np.float32))
    np.save(folder / "w.npy", np.ones(4, np.float32))
    np.savez(folder / "text.npz", x=np.array(["a", "b"]))
    np.savez(folder / "more.npz", x=np.zeros((2, 4), np.float32), more=np.zeros(2))
    np.savez(folder / "objects.npz", x=np.array(["a", "b"], object))
    (folder / "bad.onnx").write_bytes((folder / "m.onnx").read_bytes()[:-7])
    name = next(name for name, array in model.args.items() if array.dtype == "float32")
    model.with_weights({name: model.args[name] * 2 + 1}).save(folder / "other.onnx")
    given = ("opt", "m.onnx", "-o", "o.onnx", *WITH.split(), "codes_crashing", "--isolate")
    found = passlib_command(*given, folder=folder)
    left = next(word for word in found.stderr.split() if "passlib-reproducer" in word)
    Path(left.strip(".,:;")).rename(folder / "reproducer")
    return folder


@pytest.mark.parametrize(
    ("line", "status", "message"),
    CODES + ARGUMENTS,
    ids=[line for line, _, _ in CODES + ARGUMENTS],
)
def test_exit_code(
    line: str,
    status: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    try:
        found = main(shlex.split(line))
    except SystemExit as ended:  # as argparse ends the program
        found = ended.code  # type: ignore[assignment]
    err = capfd.readouterr().err
    assert (found, "Traceback" in err) == (status, False), err
    assert message in err
    assert not (folder / "ran").exists()  # what cannot be written is told before the work
    assert bool(err) == (
        (status in (1, 2, 3) and not line.startswith(("validate", "lint"))) or bool(message)
    )


def test_every_command_is_in_the_table() -> None:
    assert {line.split()[0] for line, _, _ in CODES} == {*COMMANDS}


SILENT = {"convert", "extract", "merge", "new", "rename", "set-attr", "set-shape", "set-weight"}
"""Commands that print nothing when they succeed."""

PRINTING = [
    "passes",
    "--version",
    "--help",
    "opt --help",
    "diff m.onnx m.onnx --format json",
    *(line for line, status, _ in CODES if not status and line.split()[0] not in SILENT),
]
OUTPUTS = {
    ">&-": (0, ""),
    "<&- >&-": (0, ""),
    "| true": (0, ""),
    ">/dev/full": (1, "No space left on device"),
    ">/dev/full 2>&1": (1, ""),
    ">/dev/full 2>&-": (1, ""),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("line", PRINTING)
def test_output_that_goes_nowhere(line: str, output: str, unbuffered: str, folder: Path) -> None:
    status, message = OUTPUTS[output]
    command = f"set -o pipefail; {shlex.quote(sys.executable)} -m passlib {line} {output}"
    found = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
        check=False,
    )
    name = (
        "passlib"
        if "--" in line[:3] or "--help" in line
        else f"passlib {line.split(maxsplit=1)[0]}"
    )
    said = f"{name}: {message}\n" if message else ""
    assert (found.returncode, found.stderr) == (status, said)


def test_errors_that_cannot_be_printed(folder: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m passlib inspect bad.onnx"
    for errors in ("2>&-", "2>/dev/full"):
        found = subprocess.run(["bash", "-c", f"{command} {errors}"], cwd=folder, check=False)
        assert found.returncode == 3


PRINTED = [
    f"{WITH} codes_printing",
    f"{WITH} codes_printing --isolate",
    "--passes removeDeadNodes{verbose=True}",
    "--passes 'repeat<2>(removeDeadNodes{verbose=True})'",
]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("| true", (0, "")),
        (">/dev/full", (1, "passlib opt: No space left on device\n")),
    ],
)
@pytest.mark.parametrize("passes", PRINTED)
def test_a_pass_that_prints_to_nobody(
    passes: str, output: str, expected: tuple[int, str], unbuffered: str, folder: Path
) -> None:
    command = f"{shlex.quote(sys.executable)} -m passlib opt m.onnx -o o.onnx {passes} {output}"
    found = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stderr) == expected


def test_a_full_disk_below_a_dump(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(save: Save, target: Path, **_: object) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Save, "replace", full)
    line = ["opt", "m.onnx", "-o", "full.onnx", "--passes", "removeDeadNodes", "--dump", "dumps"]
    assert main(line) == 1
    file = folder / "dumps" / "001-removeDeadNodes" / "model.onnx"
    assert capsys.readouterr().err == f"passlib opt: {file}: No space left on device\n"
    assert not (folder / "full.onnx").exists()


@pytest.mark.parametrize("line", ["inspect bad.onnx", "run gone", "passes unknownPass"])
def test_where_an_error_comes_from(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises((pl.PasslibError, OSError)):
        main([*line.split(), "--traceback"])
    assert "Traceback" in passlib_command(*line.split(), "--traceback", folder=folder).stderr


@pytest.mark.parametrize(
    "line",
    [
        f"opt m.onnx -o o.onnx {WITH} codes_right",
        f"opt m.onnx two.onnx -o outs {WITH} codes_right",
        "inspect m.onnx",
        "inspect m.onnx --ops",
        "inspect m.onnx --weights",
        "inspect m.onnx --shapes",
        "inspect m.onnx --node Add_1",
        "validate m.onnx bad.onnx",
        "compare m.onnx other.onnx --per-node",
        f"bisect m.onnx {WITH} codes_wrong --check",
        f"reduce m.onnx {WITH} codes_wrong --check -o s.onnx",
        "passes",
        "passes removeDeadNodes",
    ],
)
def test_json(line: str, folder: Path) -> None:
    """In a process of its own, as libraries print too."""
    found = passlib_command(*line.split(), "--json", folder=folder)
    assert json.loads(found.stdout), found.stderr
