"""Mistakes of newcomers on the command line: the message has the place, the thing, the way out."""

from __future__ import annotations

import re
import shlex
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import passlib as pl
from passlib.cli import main

HEAD = '<ir_version: 8, opset_import: ["" : 17]> m '

MODELS = {
    "m.onnx": "(float[N, 4] x) => (float[N, 4] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}> "
    "{ a = Identity(x) b = Add(a, w) [last] y = Relu(b) }",
    "two.onnx": "(float[N, 4] data, float[N, 4] mask) => (float[N, 4] y) { y = Add(data, mask) }",
    "cnov.onnx": "(float[4] x) => (float[4] y) { y = Cnov(x) }",
    "open.onnx": "(float[N] x) => (float[97, 83] y) <int64[2] s = {97, 83}> { y = Reshape(x, s) }",
}

FILES: dict[str, bytes] = {
    "text.onnx": b"hello\n",
    "notes.txt": b"hello\n",
    "empty.onnx": b"",
    "a.xml": b'<?xml version="1.0"?><net name="m" version="11"></net>',
    "a.bin": bytes(64),
    "a.engine": b"ftrt" + bytes(64),
    "a.plan": b"ftrt" + bytes(64),
    "a.h5": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "a.pb": b"\n\x10\n\x05input\x12\x0bPlaceholder" + bytes(20),
    "a.tflite": b"\x1c\0\0\0TFL3" + bytes(64),
    "a.pth": b"\x80\x02" + bytes(64),
    "a.gguf": b"GGUF" + bytes(64),
    "a.safetensors": b"\x02" + bytes(7) + b"{}",
    "a.mlmodel": b"\x08\x04\x12\x10" + bytes(64),
    "a.tar": bytes(257) + b"ustar" + bytes(64),
    "lib.cc": b"int x;",
    "missing.py": b"import nothing_there\n",
    "syntax.py": b"def f(:\n",
    "standard.py": b"import passlib as pl\n@pl.graph_pass\ndef foldConstants(graph): pass\n",
    "bad.rules": b'rule a "b."\n  y = Relu(\n',
}

ARCHIVES = {
    "a.pt": ["archive/data.pkl", "archive/version"],
    "a.pt2": ["a/archive_format", "a/models/model.json"],
    "a.keras": ["metadata.json", "config.json", "model.weights.h5"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    for name, text in MODELS.items():
        onnx.save(onnx.parser.parse_model(HEAD + text), place / name)
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    for name, members in ARCHIVES.items():
        with zipfile.ZipFile(place / name, "w") as archive:
            for member in members:
                archive.writestr(member, "{}")
    net = pl.sym.FullyConnected(pl.sym.var("data"), num_hidden=3, name="fc")
    weights = {"fc_weight": np.ones((3, 4), "float32"), "fc_bias": np.ones(3, "float32")}
    pl.Model(net, weights).save(place / "net")
    (place / "net-0000.params").rename(place / "weights.params")
    np.savez(place / "other.npz", y=np.ones((2, 4), "float32"))
    np.savez(place / "short.npz", x=np.ones((2, 3), "float32"))
    np.savez(place / "double.npz", x=np.ones((2, 4)))
    (place / "folder").mkdir()
    return place


TO_ONNX = "export it to ONNX first"

MISTAKES: list[tuple[str, int, str]] = [
    # Words of other tools, and words that are nearly right.
    ("optimise m.onnx", 1, "there is no command 'optimise'; did you mean 'opt'?"),
    ("simplify m.onnx out.onnx", 1, "no command 'simplify'; did you mean 'opt'?"),
    ("check m.onnx", 1, "no command 'check'; did you mean 'validate'?"),
    ("show m.onnx", 1, "no command 'show'; did you mean 'inspect'?"),
    ("inspct m.onnx", 1, "no command 'inspct'; did you mean 'inspect'"),
    ("m.onnx", 1, "no command 'm.onnx'; it is a file: passlib opt m.onnx -o OUT simplifies"),
    ("opt m.onnx -o o.onnx --pases clean", 1, "no option --pases; did you mean '--passes'?"),
    ("inspect m.onnx --op", 1, "there is no option --op; did you mean '--ops'?"),
    ("convert m.onnx -o n.onnx", 1, "there is no option -o: the file to write is the argument OUT"),
    ("inspect m.onnx --costs all", 1, "--costs: invalid choice: 'all' (choose from 'operator'"),
    (
        "convert m.onnx c.onnx --dialect onx",
        1,
        "no dialect 'onx'; did you mean 'onnx'? (there are mx",
    ),
    # Arguments that are missing, malformed or contradict each other.
    ("opt m.onnx", 1, "arguments are required: -o/--output; see passlib opt --help"),
    ("opt -o o.onnx", 1, "arguments are required: MODEL"),
    ("compare m.onnx", 1, "arguments are required: B"),
    ("opt --check m.onnx -o o.onnx", 1, "whole number, not 'm.onnx'; a bare --check stands behind"),
    ("opt m.onnx -o o.onnx --check 0", 1, "--check: must be at least 1"),
    ("opt m.onnx -o o.onnx --opset latest", 1, "--opset: must be a whole number, not 'latest'"),
    ("opt m.onnx -o o.onnx --opset 99", 1, "opset is 99; it can be 1 to 28"),
    ("opt m.onnx -o o.onnx --jobs 0", 1, "--jobs: must be at least 1"),
    ("opt m.onnx -o o.onnx --timeout -1", 1, "must be a finite number of seconds > 0, not -1"),
    ("compare m.onnx m.onnx --exact --rtol 1", 1, "--exact: does not go with --rtol or --atol"),
    ("rename m.onnx -o o.onnx x", 1, "expected OLD=NEW, got 'x'"),
    ("merge m.onnx two.onnx -o o.onnx --connect y", 1, "expected --connect NAME=VALUE, got 'y'"),
    ("bisect m.onnx", 1, "give --check or --test 'COMMAND {}' to define when a model is broken"),
    ("bisect m.onnx --test grep", 1, "--test: the command needs {}, the path of the model"),
    # Outputs.
    ("opt - -o o.onnx", 1, "'-', standard input or output, is not supported: give the path"),
    ("opt m.onnx -o -", 1, "'-', standard input or output, is not supported: give the path"),
    ("opt m.onnx -o folder", 1, "folder: this is a folder; add the name of a file in it"),
    ("opt m.onnx -o no/o.onnx", 1, "-o no/o.onnx: the folder no does not exist; make it"),
    ("opt m.onnx -o o.json", 1, "o.json: .json is a suffix of MXNet, ARK, DLPrimitives, NNVM, and"),
    ("opt m.onnx two.onnx -o o.onnx", 1, "-o o.onnx: several models need a folder, not a file"),
    ("opt m.onnx -o o.onnx --dump m.onnx", 1, "--dump m.onnx: expected a folder, found a file"),
    (
        "opt m.onnx -o o.onnx --report r.png",
        1,
        "--report r.png: this writes an HTML page, not .png",
    ),
    ("view m.onnx -o x.png", 1, "-o x.png: this writes an HTML page, not .png"),
    # Passes, rules and libraries.
    ("opt m.onnx -o o.onnx --passes simplfy", 1, "'simplfy'; did you mean 'simplify'?"),
    ("opt m.onnx -o o.onnx --passes simplify{skp=a}", 1, "'skp'; did you mean 'skip'? (it has:"),
    ("opt m.onnx -o o.onnx --passes 'simplify x'", 1, "character 10: expected ',' or the end"),
    ("opt m.onnx -o o.onnx --skip removeNoOp", 1, "no such pass; did you mean 'removeNoOps'?"),
    ("opt m.onnx -o o.onnx -l lib.cc", 1, "it is not a shared library (no ELF header); compile it"),
    ("opt m.onnx -o o.onnx -l no.so", 1, "no.so': the file does not exist"),
    ("opt m.onnx -o o.onnx -l missing.py", 1, "missing.py: ModuleNotFoundError: No module named"),
    ("opt m.onnx -o o.onnx -l syntax.py", 1, "syntax.py: SyntaxError: invalid syntax"),
    ("opt m.onnx -o o.onnx -l standard.py", 1, "rename it, or let it take the name over with repl"),
    ("opt m.onnx -o o.onnx --rules notes.txt", 1, "the name of a file of rules ends in .rules; -l"),
    ("opt m.onnx -o o.onnx --rules bad.rules", 3, "bad.rules, line 3, column 1: expected an oper"),
    ("rules reluTwic", 1, "there is no rule or group 'reluTwic'; did you mean 'reluTwice'"),
    ("build no.cc", 1, "no.cc: there is no such source file"),
    ("new foldConstants", 1, "'foldConstants' is the name of a standard pass; choose another"),
    (
        "run folder",
        1,
        "folder: not a reproducer: an isolated pass leaves a folder with reproducer.js",
    ),
    # Shapes and inputs.
    ("opt m.onnx -o o.onnx --shape x:1,4", 1, "--check-each; --fix-shape sets the shape of an in"),
    ("opt m.onnx -o o.onnx --fix-shape x=1,4", 1, "x=1,4: write name:1,3,224,224, with ? for an"),
    ("opt m.onnx -o o.onnx --fix-shape q:1,4", 3, "the model has no input 'q'; its inputs are x"),
    ("opt m.onnx -o o.onnx --fix-shape x:1,5", 1, "shape (1, 5), but the model states (?, 4)"),
    ("opt m.onnx -o o.onnx --passes toHalf --fix-shape x:1,4", 1, "use passlib set-shape"),
    ("compare m.onnx m.onnx --inputs no.npz", 1, "no.npz: No such file or directory"),
    ("compare m.onnx m.onnx --inputs notes.txt", 1, "not an .npz file of arrays; write one with"),
    ("compare m.onnx m.onnx --inputs other.npz", 1, "no array for input x of the model, but one"),
    ("compare m.onnx m.onnx --inputs short.npz", 1, "shape (2, 3), the model wants float32 (?, 4)"),
    ("compare m.onnx m.onnx --inputs double.npz", 1, "convert it with .astype('float32')"),
    ("compare open.onnx open.onnx", 3, "give shapes (--shape, shapes=) or arrays (--inputs"),
    ("compare m.onnx two.onnx", 1, "only the first has x; only the second has data, mask"),
    ("inspect m.onnx --node lst", 1, "the model has no node 'lst'; near it are last"),
    ("merge m.onnx two.onnx -o o.onnx --connect y=dat", 3, "no input 'dat'; did you mean 'data'?"),
    # Weights that are missing.
    ("convert net-symbol.json c.onnx --shape data:1,4", 1, "(--params) or epoch=N (--epoch)"),
    ("convert net-symbol.json c.onnx --epoch 3", 1, "net-0003.params: there are no weights of epo"),
    ("convert net-symbol.json c.onnx --params weights.params", 1, "or as --shape data:..."),
    # Files that are no models.
    ("inspect no.onnx", 1, "no.onnx: there is no such model"),
    ("inspect folder", 3, "but a folder; name the file of the model in it"),
    ("inspect text.onnx", 3, "not a model that passlib reads, but a text file"),
    ("inspect notes.txt", 3, "not a model that passlib reads, but a text file"),
    ("inspect empty.onnx", 3, "but an empty file"),
    ("inspect https://host/m.onnx", 3, "this is a URL; download the file first"),
    ("inspect a.xml", 3, "such as an OpenVINO model; take the ONNX model that it was made of"),
    ("inspect a.bin", 3, "such as that of an OpenVINO or PyTorch model, without a graph"),
    ("inspect a.engine", 3, "a TensorRT engine; take the ONNX model that it was made of"),
    ("inspect a.plan", 3, "a TensorRT engine; take the ONNX model that it was made of"),
    ("inspect a.h5", 3, "if it is a Keras model, export it to ONNX first, with tf2onnx"),
    ("inspect a.keras", 3, f"a Keras model; {TO_ONNX}, with its export(format='onnx') or tf2onnx"),
    ("inspect a.pb", 3, f"a TensorFlow graph; {TO_ONNX}, with tf2onnx"),
    ("inspect a.tflite", 3, f"a TensorFlow Lite model; {TO_ONNX}, with tf2onnx"),
    ("inspect a.pt", 3, f"a PyTorch file; {TO_ONNX}, with torch.onnx.export"),
    ("inspect a.pt2", 3, f"a PyTorch file; {TO_ONNX}, with torch.onnx.export"),
    ("inspect a.pth", 3, f"such as an old PyTorch file; {TO_ONNX}, with torch.onnx.export"),
    ("inspect a.gguf", 3, f"a GGUF file of weights; {TO_ONNX} from the model that it was made of"),
    ("inspect a.safetensors", 3, "a file of weights without a graph; give it as params="),
    ("inspect a.mlmodel", 3, f"a Core ML model; {TO_ONNX}"),
    ("inspect a.tar", 3, "a tar archive; unpack it first"),
    ("inspect other.npz", 3, "an .npz file of weights without a graph; give it as params="),
    # Doubts about a model are warnings.
    ("opt cnov.onnx -o o.onnx", 0, "warning: cnov.onnx: ONNX has no operator Cnov (node 'Cnov_0')"),
]


@pytest.mark.parametrize(("line", "status", "message"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(
    line: str,
    status: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    try:
        found: object = main(shlex.split(line))
    except SystemExit as end:
        found = end.code
    printed = capsys.readouterr().err
    assert message in printed
    assert (found, printed.count("\n")) == (status, 1)
    assert re.match(r"passlib( [a-z-]+)?: ", printed)
    if status:
        assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    for made in ("o.onnx", "c.onnx"):
        (folder / made).unlink(missing_ok=True)


def test_there_are_sixty() -> None:
    assert len({line for line, _, _ in MISTAKES}) >= 60
