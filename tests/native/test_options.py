"""The options of passlib-opt beside those of ``passlib opt``: output, errors and files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from commands import passlib_command
from native_command import TOOL, run
from places import TESTS
from plugin_build import CXX, LIBRARY, compile_to

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="needs make native")

SIZES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 3, H] x, float[N] z, seq(float[2]) q) => (float[A, B] y, float[N] v, float[N, 3, H] u)
<float[3] w = {1, 2, 3}, int64[1] i = {0}, int64[1] m = {-1}>
{ s = Shape(x) n = Gather(s, i) t = Concat <axis = 0> (n, m) y = Reshape(x, t)
  v = Abs(z) a = Identity(x) u = Abs(a) }"""

BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2] x, bool c) => (float[N, 2] y, int64[1] k)
<int64[1] i = {0}> {
  s = Shape(x) k = Gather(s, i) n = Cast <to = 1> (k)
  y = If(c) <
    then_branch = t () => (float[N, 2] p) { a = Shape(x) b = Cast <to = 1> (a) d = Identity(x)
                                            p = Add(d, b) },
    else_branch = e () => (float[N, 2] q) { q = Mul(x, n) }> }"""

FUNCTION = """<ir_version: 9, opset_import: ["" : 17, "own" : 1]>
g (float[N, 2] x) => (float[N, 2] y) { y = own.twice(x) }
<domain: "own", opset_import: ["" : 17]>
twice (a) => (b) { s = Shape(a) c = Identity(a) d = Identity(c) e = Add(d, c) b = Reshape(e, s) }"""

SCALAR = """<ir_version: 8, opset_import: ["" : 17]>
g (float x, float[n] z) => (float[n] y, float[n] v)
{ s = Shape(z) e = Expand(x, s) y = Add(e, z) v = Abs(z) }"""

# Removing the operators costs bytes, and the other way.
WEIGHTS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2, 400] y)
<float[1] f = {2.5}, int64[2] s = {2, 400}, float[2] a = {1, 2}, float[2] b = {1, 2}>
{ e = Expand(f, s) u = Unsqueeze(x, one) p = Add(e, u) c = Add(a, b) d = Unsqueeze(c, one)
  r = Identity(d) y = Add(p, r) one = Constant <value = int64[1] {1}> () }"""


def write(text: str, path: Path) -> Path:
    """Write a model."""
    model = onnx.parser.parse_model(text)
    nodes = sorted(model.graph.node, key=lambda node: node.op_type != "Constant")
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    path.write_bytes(model.SerializeToString())
    return path


def without_times(text: str) -> str:
    """Return the output of a command without times and the name of the command."""
    text = re.sub(r"in [0-9.]+ s", "in 0 s", text)
    return re.sub(r"^(passlib opt|passlib-opt): ", "", text, flags=re.MULTILINE)


def both(folder: Path, model: Path, *words: str) -> tuple[Any, Any]:
    """Run both commands; return for each the status, the output, the errors and the file."""
    results = []
    for native in (True, False):
        out = folder / "out.onnx"
        out.unlink(missing_ok=True)
        if native:
            found = run(model, "-o", out, *words)
            status, printed, errors = found
            errors = errors.removeprefix("usage: passlib-opt [options] -o OUT MODEL\n")
        else:
            done = passlib_command("opt", model, "-o", out, *words)
            status, printed, errors = done.returncode, done.stdout, done.stderr
        content = out.read_bytes() if out.exists() else None
        results.append((status, without_times(printed), without_times(errors), content))
    return results[0], results[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SIZES, ["--fix-shape", "x:1,3,5"]),
        (SIZES, ["--fix-shape", "x:?,3,5", "--fix-shape", "z:4"]),
        (SIZES, ["--fix-shape", "x: 2 , ? ,?"]),
        (SIZES, ["--fix-shape", "x:?,?,?"]),
        (SIZES, ["--fix-shape", "x:1,3,5", "--fix-shape", "x:2,3,5"]),
        (SIZES, ["--fix-shape", "mod*.onnx=x:1,3,5"]),
        (SIZES, ["--fix-shape", "x:1,3,5", "--passes", "removeDeadNodes, clean"]),
        (SIZES, ["--fix-shape", "z:2", "--passes", 'simplify{fixed=["x:1,3,5"]}, clean']),
        (SIZES, ["--fix-shape", "x:1,3,5", "--skip", "foldConstants"]),
        (BRANCHES, ["--fix-shape", "x:7,2"]),
        (BRANCHES, ["--fix-shape", "x:7,2", "--passes", "clean"]),
        (FUNCTION, ["--fix-shape", "x:7,2"]),
        (SCALAR, ["--fix-shape", "x:", "--fix-shape", "z:3"]),
        # Mistakes.
        (SIZES, ["--fix-shape", "x"]),
        (SIZES, ["--fix-shape", "x:1,,3"]),
        (SIZES, ["--fix-shape", ":1"]),
        (SIZES, ["--fix-shape", "x:1,3"]),
        (SIZES, ["--fix-shape", "x:1,4,2"]),
        (SIZES, ["--fix-shape", "x:0,3,2"]),
        (SIZES, ["--fix-shape", "x:9999999999999999999,3,5"]),
        (SIZES, ["--fix-shape", "x:10000000000000000000000,3,5"]),
        (SIZES, ["--fix-shape", "none:1"]),
        (SIZES, ["--fix-shape", "q:1"]),
        (SIZES, ["--fix-shape", "w:3"]),
        (SIZES, ["--fix-shape", "other*=x:1,3,5"]),
        (SIZES, ["--fix-shape", "x:1,3,5", "--passes", "removeDeadNodes"]),
        (SIZES, ["--fix-shape", "x:1,3,5", "--passes", "repeat<2>(simplify)"]),
        (SIZES, ["--fix-shape", "x:1,3,5", "--passes", ""]),
        (SIZES, ["--target", "onnxruntime", "--passes", "removeDeadNodes"]),
        (SIZES, ["--target", "onnxruntime", "--passes", "removeDeadNodes, clean"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_same_output(text: str, words: list[str], tmp_path: Path) -> None:
    native, python = both(tmp_path, write(text, tmp_path / "model.onnx"), *words)
    assert native == python


def test_fixed_in_a_pipeline_that_is_malformed(tmp_path: Path) -> None:
    model = write(SIZES, tmp_path / "model.onnx")
    found = run(model, "-o", tmp_path / "out.onnx", "--passes", "clean, simplify{fixed=[x]}")
    assert (found.status, found.errors) == (
        1,
        (
            "passlib-opt: pipeline 'clean, simplify{fixed=[x]}', character 8: x: write "
            "name:1,3,224,224, with ? for an open size\n"
        ),
    )


@pytest.mark.parametrize("cost", ["nodes", "bytes"])
@pytest.mark.parametrize("name", ["simplify", "clean"])
@pytest.mark.parametrize("text", [WEIGHTS, SIZES, BRANCHES])
def test_cost(text: str, name: str, cost: str, tmp_path: Path) -> None:
    words = ["--passes", f"{name}{{cost={cost}, max_growth=100000}}"]
    native, python = both(tmp_path, write(text, tmp_path / "model.onnx"), *words)
    assert native == python


def test_cost_of_bytes_keeps_operators(tmp_path: Path) -> None:
    model, out = write(WEIGHTS, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    counts = {}
    for cost in ("nodes", "bytes"):
        words = ["--passes", f"simplify{{cost={cost}, max_growth=100000}}", "--quiet"]
        assert run(model, "-o", out, *words) == (0, "", "")
        counts[cost] = [node.op_type for node in onnx.load(out).graph.node].count("Expand")
    assert counts == {"nodes": 0, "bytes": 1}


@pytest.mark.parametrize("cost", ["flops", "traffic"])
def test_cost_that_is_estimated(cost: str, tmp_path: Path) -> None:
    """Estimates are those of the Python package, and of models of ONNX alone."""
    model = write(WEIGHTS, tmp_path / "model.onnx")
    words = ["--passes", f"simplify{{cost={cost}, max_growth=100000}}", "--quiet"]
    native, python = both(tmp_path, model, *words)
    assert native == python
    assert native[0] == 0
    mxnet = TESTS / "data/mxnet/models/squeezenet1.1"
    found = run(mxnet, "-o", tmp_path / "out", "--passes", f"simplify{{cost={cost}}}")
    assert (found.status, found.errors) == (
        1,
        (
            f"passlib-opt: pipeline 'simplify{{cost={cost}}}', character 1: option 'cost': native "
            f"hosts do not estimate {cost} for models of mxnet: run it with passlib's Python "
            "package, as passlib opt\n"
        ),
    )


PIPELINES = [
    "simplify",
    "clean",
    "simplify{cost=flops}",
    "clean{cost=traffic}",
    "removeDeadNodes, mergeEqualNodes{parameters=true}",
    "repeat<3>(foldConstants, removeDeadNodes)",
    "inlineFunctions, outline{least=2, domain=x}",
    "removeDeadNodes",
    "",
]


@pytest.mark.parametrize("text", [SIZES, BRANCHES, FUNCTION, WEIGHTS])
@pytest.mark.parametrize("steps", PIPELINES)
def test_json(text: str, steps: str, tmp_path: Path) -> None:
    """Keys and values are those of the Python command but the times and what it alone finds."""
    model = write(text, tmp_path / "model.onnx")
    native, python = both(tmp_path, model, "--passes", steps, "--json")
    (found,), (expected,) = json.loads(native[1]), json.loads(python[1])
    for facts in (found, expected):
        assert facts.pop("seconds") > 0
        for step in facts["steps"]:
            assert step.pop("seconds") >= 0
    expected.pop("more_layers", None)
    assert found == expected
    assert native[3] == python[3]


def test_warnings(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 99, "own" : 1]>
g (float[2] x) => (float[2] y) { a = Cnov(x) b = own.Op(a) c = Cnov(b) y = Relu(c) }"""
    model = write(text, tmp_path / "model.onnx")
    native, python = both(tmp_path, model, "--passes", "removeDeadNodes", "--json")
    texts = [json.loads(each[1])[0]["warnings"] for each in (native, python)]
    assert texts[0] == [re.sub("the installed onnx", "passlib", each) for each in texts[1]]
    assert texts[0][1] == "ONNX has no operator Cnov (node 'Cnov_0')"
    for each, lines in zip((native, python), texts, strict=True):
        assert [f"warning: {model}: {line}" for line in lines] == [
            re.sub("^passlib[- ]opt: ", "", line) for line in each[2].splitlines()
        ]


def test_names_of_files_that_are_not_utf8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"n\xff\xc3\xbc\xc3\xe2\x80\xae")
    try:
        (tmp_path / odd).mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    model = write(SIZES, tmp_path / odd / "model.onnx")
    words = (model, "-o", tmp_path / odd / "out.onnx")
    native, python = run(*words, "--json"), passlib_command("opt", *words, "--json")
    have, want = json.loads(native.printed), json.loads(python.stdout)
    assert have[0]["files"] == want[0]["files"] == [str(tmp_path / odd / "out.onnx")]
    assert r"n\udcffü\udcc3\u202e" in native.printed
    native, python = run(*words), passlib_command("opt", *words)
    assert r"n\udcffü\udcc3\u202e/out.onnx" in native.printed.splitlines()[-1]
    assert without_times(native.printed) == without_times(python.stdout)


def test_json_of_several_files(tmp_path: Path) -> None:
    model, out = write(SIZES, tmp_path / "model.onnx"), tmp_path / "o" / "out.onnx"
    big = onnx.load(model)
    big.graph.initializer.append(
        onnx.helper.make_tensor("big", 1, [64, 64], bytes(64 * 64 * 4), raw=True)
    )
    big.graph.node.append(onnx.helper.make_node("Abs", ["big"], ["g"]))
    big.graph.output.append(onnx.helper.make_tensor_value_info("g", 1, [64, 64]))
    onnx.save(big, model, save_as_external_data=True, location="big.data", size_threshold=100)
    out.parent.mkdir()
    for name in ("native", "python"):
        (tmp_path / name).mkdir()
    (found,) = json.loads(run(model, "-o", out, "--json").printed)
    sizes = [
        sum(p.stat().st_size for p in each.parent.iterdir() if p.is_file()) for each in (model, out)
    ]
    assert found["bytes"] == {"before": sizes[0], "after": sizes[1]}
    assert sorted(found["files"]) == sorted(str(path) for path in out.parent.iterdir())
    words = (model, "--passes", "removeDeadNodes", "-o")
    native = run(*words, tmp_path / "native" / "out.onnx").printed
    python = passlib_command("opt", *words, tmp_path / "python" / "out.onnx").stdout
    assert without_times(native) == without_times(python).replace("/python/", "/native/")
    assert "kB -> " in native
    # In place, the data file is kept.
    native = run(*words, model, "--json").printed
    python = passlib_command("opt", *words, model, "--json").stdout
    for printed in (native, python):
        (found,) = json.loads(printed)
        assert found["bytes"]["before"] >= found["bytes"]["after"] > 16000


def test_time(tmp_path: Path) -> None:
    """A line for each pass that ran, the slowest first, and the sum."""
    model = write(SIZES, tmp_path / "model.onnx")
    native, python = both(tmp_path, model, "--time")
    tables = []
    for _, printed, _, _ in (native, python):
        rows = re.findall(r"^(\S+) +([0-9.]+) ms$", printed, re.MULTILINE)
        assert rows[-1][0] == "total"
        times = [float(time) for _, time in rows[:-1]]
        assert times == sorted(times, reverse=True)
        tables.append({name for name, _ in rows})
    assert tables[0] == tables[1]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library with a pass that leaves a cycle."""
    path = tmp_path_factory.mktemp("library") / "edges.so"
    compile_to(path, (*CXX, *LIBRARY), [TESTS / "plugins" / "bad_edges.cc"])
    return path


@pytest.mark.parametrize("steps", [*PIPELINES[:-1], "removeDeadNodes, makesCycle"])
def test_dump(steps: str, failing: Path, tmp_path: Path) -> None:
    """The model after each step, and before one that fails, is that of the Python command."""
    model = write(SIZES, tmp_path / "model.onnx")
    found, states = [], []
    for name in ("native", "python"):
        words = ["--passes", steps, "--quiet", "-l", failing, "--dump", tmp_path / name]
        if name == "native":
            states.append(run(model, "-o", tmp_path / "out.onnx", *words).status)
        else:
            done = passlib_command("opt", model, "-o", tmp_path / "out.onnx", *words)
            states.append(done.returncode)
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        found.append({str(p.relative_to(tmp_path / name)): p.read_bytes() for p in files})
    assert found[0]
    assert found[0] == found[1]
    is_failing = "makesCycle" in steps
    assert states == [2 if is_failing else 0] * 2
    assert ("001-before-makesCycle/model.onnx" in found[0]) == is_failing


def test_dump_of_a_file(tmp_path: Path) -> None:
    model = write(SIZES, tmp_path / "model.onnx")
    native, python = both(tmp_path, model, "--dump", str(model))
    assert native == python
    assert native[0] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": 1}, "unknown member 'more'"),
        ({"exact": 1}, "'exact' must be true or false, not 1"),
        ({"name": "other"}, "'other' is declared, but no pass has that name"),
        ({"options": [{"name": "level"}]}, "has no 'description'"),
    ],
)
def test_wrong_declarations(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Python, whose tests have the other cases."""
    library = tmp_path / "declares.so"
    compile_to(library, ("gcc", *LIBRARY), [TESTS / "plugins" / "declares_text.c"])
    declared = {
        "name": "declaresText", "description": "", "dialects": [], "options": [],
        "any_options": False, "needs_weights": True, "needs_shapes": True, **changes,
    }  # fmt: skip
    monkeypatch.setenv("DECLARATIONS", json.dumps({"version": 1, "passes": [declared]}))
    done = run(write(SIZES, tmp_path / "model.onnx"), "-o", tmp_path / "out.onnx", "-l", library)
    assert done.status == 1
    assert message in done.errors
