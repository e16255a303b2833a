"""Names from files reach a terminal, a notebook or a page with escapes only."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from commands import passlib_command
from passlib.errors import printable
from passlib.workbench import Differs, bisect, compare, diff

RAW = "\x1b[31m\x9b2J\r\nforged: fine\x07\u202e\x7f\u2028"
ESCAPED = printable(RAW)

PASSES = """
import passlib as pl

@pl.graph_pass(replace=True)
def hostile_neg(graph: pl.Graph) -> None:
    \"\"\"Computes something else.\"\"\"
    for node in graph.sorted():
        if node.op == "Relu":
            node.op = "Neg"

@pl.graph_pass(replace=True)
def hostile_error(graph: pl.Graph) -> None:
    \"\"\"Fails with a name of the model.\"\"\"
    raise ValueError(next(iter(graph.args)))
"""


def model_of(mark: str, value: float = 1.0, op: str = "Relu") -> onnx.ModelProto:
    make = onnx.helper.make_node
    types = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3])
        for name in (f"x{mark}", f"y{mark}")
    ]
    weight = onnx.numpy_helper.from_array(np.full((2, 3), value, np.float32), f"w{mark}")
    nodes = [
        make("Add", [f"x{mark}", f"w{mark}"], [f"a{mark}"], name=f"add{mark}"),
        make(op, [f"a{mark}"], [f"y{mark}"], name=f"relu{mark}", doc_string=mark),
    ]
    graph = onnx.helper.make_graph(nodes, f"g{mark}", types[:1], types[1:], [weight])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    onnx.save(model_of(RAW), folder / "m.onnx")
    onnx.save(model_of(RAW, 2.0), folder / "other.onnx")
    onnx.save(model_of(RAW, op=f"Nothing{RAW}"), folder / "unknown.onnx")
    broken = model_of(RAW)
    broken.graph.node[0].input[0] = f"gone{RAW}"
    onnx.save(broken, folder / "broken.onnx")
    (folder / "passes.py").write_text(PASSES, "utf-8")
    pl.passes.rules.load_passes(folder / "passes.py")
    return folder


def is_clean(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text) and "\nforged" not in text


LINES = [
    "inspect m.onnx",
    "inspect m.onnx --ops",
    "inspect unknown.onnx --ops",
    "inspect m.onnx --weights",
    "inspect m.onnx --shapes",
    "inspect m.onnx --node nowhere",
    "inspect m.onnx --json",
    "inspect broken.onnx",
    "validate m.onnx broken.onnx unknown.onnx",
    "validate broken.onnx unknown.onnx --json",
    "compare m.onnx other.onnx --per-node",
    "compare m.onnx other.onnx --per-node --json",
    "compare m.onnx broken.onnx",
    "compare m.onnx unknown.onnx",
    "diff m.onnx other.onnx",
    "diff m.onnx other.onnx --format json",
    "diff m.onnx unknown.onnx",
    "diff m.onnx other.onnx -o d.html",
    "opt m.onnx -o o.onnx",
    "opt m.onnx -o o.onnx --check --time --report r.html",
    "opt unknown.onnx -o o.onnx --verify-each",
    "opt broken.onnx -o o.onnx",
    "opt m.onnx -o o.onnx -l passes.py --passes hostile_neg --check",
    "opt m.onnx -o o.onnx -l passes.py --passes hostile_neg --check-each",
    "opt m.onnx -o o.onnx -l passes.py --passes hostile_error",
    "opt m.onnx -o o.onnx -l passes.py --passes hostile_error --isolate",
    "opt m.onnx broken.onnx -o outs -l passes.py --passes hostile_neg --check",
    "opt m.onnx -o o.onnx --check --shape nowhere:1",
    "bisect m.onnx -l passes.py --passes hostile_neg --check",
    "bisect m.onnx -l passes.py --passes hostile_error --check",
    "bisect m.onnx -l passes.py --passes hostile_neg --check --json",
    "reduce m.onnx -l passes.py --passes hostile_neg --check -o s.onnx",
    "convert unknown.onnx c.onnx",
    "view m.onnx -o v.html",
]


@pytest.mark.parametrize("line", LINES)
def test_what_commands_print(line: str, folder: Path) -> None:
    found = passlib_command(*line.split(), folder=folder)
    assert "Traceback" not in found.stderr
    assert is_clean(found.stdout), found.stdout
    assert is_clean(found.stderr), found.stderr
    if "--json" in line and found.stdout:
        json.loads(found.stdout)


@pytest.mark.parametrize(
    "line",
    [
        "opt m.onnx -o o.onnx -l passes.py --passes hostile_error --traceback",
        "compare m.onnx unknown.onnx --traceback",
        "diff m.onnx broken.onnx --traceback",
    ],
)
def test_tracebacks(line: str, folder: Path) -> None:
    command = [sys.executable, "-m", "passlib", *line.split()]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "Traceback" in found.stderr
    assert "[31m" in found.stderr
    assert is_clean(found.stderr), found.stderr


def test_json_has_the_names_themselves(folder: Path) -> None:
    found = passlib_command("inspect", "m.onnx", "--weights", "--json", folder=folder)
    assert json.loads(found.stdout)[0]["name"] == f"w{RAW}"


@pytest.mark.parametrize("name", ["r.html", "v.html"])
def test_pages(name: str, folder: Path) -> None:
    passlib_command("opt", "m.onnx", "-o", "o.onnx", "--check", "--report", "r.html", folder=folder)
    passlib_command("view", "m.onnx", "-o", "v.html", folder=folder)
    text = (folder / name).read_text("utf-8")
    assert not {"\x1b", "\x9b", "\x07", "\u202e", "\x7f"} & {*text}
    assert "forged: fine" in text


def error_of(call: Callable[[], object]) -> pl.PasslibError:
    with pytest.raises(pl.PasslibError) as caught:
        call()
    return caught.value


def texts_of(folder: Path) -> dict[str, Any]:
    """Return what users may print, by what it is."""
    model, other = pl.load(folder / "m.onnx"), pl.load(folder / "other.onnx")
    pipeline = pl.Pipeline("hostile_neg")
    result = pipeline.run(model)
    found = bisect(model, pipeline, Differs(model))
    block = pl.nn.SymbolBlock(model.symbol, [pl.sym.var(f"x{RAW}")])
    calls: dict[str, Callable[[], object]] = {
        "missing input": lambda: model.run({}),
        "another input": lambda: model.run({f"q{RAW}": np.zeros(2)}),
        "another weight": lambda: model.with_weights({f"q{RAW}": np.zeros(2)}),
        "an unknown operator": lambda: pl.load(folder / "unknown.onnx").run(
            {f"x{RAW}": np.zeros((2, 3), np.float32)}
        ),
        "a broken file": lambda: pl.load(folder / "broken.onnx"),
        "a pass that fails": lambda: model.optimize_for("hostile_error"),
    }
    errors = {name: error_of(call) for name, call in calls.items()}
    values = [
        model, model.summary(), model.symbol, model.symbol.debug_str(), model.symbol.nodes(),
        model.args, model.inputs, compare(model, other), compare(model, other, per_node=True),
        diff(model, other), diff(model, pl.load(folder / "unknown.onnx")), result, found,
        found.rewrites, block, *block.collect_params().values(),
        *pl.validate(folder / "broken.onnx"),
    ]  # fmt: skip
    return {**{f"{number} {type(v).__name__}": v for number, v in enumerate(values)}, **errors}


def test_what_objects_print(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for name, value in texts_of(folder).items():
        assert is_clean(str(value).replace("\t", "")), (name, str(value))
        if not isinstance(value, str):
            assert is_clean(repr(value)), (name, repr(value))
        if hasattr(value, "_repr_html_"):
            html = value._repr_html_()
            assert not {"\x1b", "\x9b", "\x07", "\u202e", "\x7f"} & {*html}, name
    assert is_clean(caplog.text)


@pytest.mark.parametrize(
    "verbose", ["removeDeadNodes", "mergeEqualNodes", "foldBatchNormalization"]
)
def test_what_standard_passes_print(
    verbose: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = pl.sym.var("x")
    normal = pl.sym.BatchNorm(pl.sym.relu(x, name="r"), name=f"bn{RAW}")
    pl.Model(normal).optimize_for(verbose, verbose=True)
    assert is_clean(capsys.readouterr().out)


def test_printable() -> None:
    assert printable("a é 中 \\x1b") == "a é 中 \\x1b"
    assert printable("\x1b\n\ud800\x9b") == "\\x1b\\n\\ud800\\x9b"
    assert printable("a\nb\t", keep="\n") == "a\nb\\t"
    assert ESCAPED.isprintable()
