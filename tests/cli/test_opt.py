"""``passlib opt`` and ``passlib passes``."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib
from commands import passlib_command
from onnx_models import CHAIN, save
from passlib.cli import main

PASSES = '''
import numpy as np
import passlib as pl

@pl.graph_pass
def drop_clip(graph: pl.Graph) -> None:
    """Takes Clip out."""
    for node in graph.sorted():
        if node.op == "Clip":
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)

@pl.graph_pass
def double_weights(graph: pl.Graph) -> None:
    """Doubles every weight of real numbers."""
    for name, array in list(graph.args.items()):
        if array.dtype == np.float32:
            graph.args[name] = array * 2

@pl.graph_pass
def raise_error(graph: pl.Graph) -> None:
    """Fails."""
    raise ValueError("on purpose")

@pl.graph_pass
def misspell(graph: pl.Graph) -> None:
    """Leaves an operator that ONNX does not have."""
    for node in graph.sorted():
        if node.op == "Relu":
            node.op = "Relo"
'''


NEGATIONS = """
<ir_version: 8, opset_import: ["" : 17]>
negations (float[4] x) => (float[4] y)
{
   a = Relu(x)
   b = Neg(a)
   y = Relu(b)
}
"""

REPLACE = '''
import passlib as pl

@pl.graph_pass
def NAME(graph: pl.Graph) -> None:
    """Puts Identity in the place of Relu."""
    for node in graph.sorted():
        if node.op == "Relu":
            made = graph.add_node("Identity", list(node.inputs), name=f"{node.name}_new")
            graph.replace(node.outputs[0], made.outputs[0])
            graph.remove(node)
'''


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return save(CHAIN, tmp_path / "chain.onnx")


@pytest.fixture
def passes(tmp_path: Path) -> Path:
    path = tmp_path / "passes.py"
    path.write_text(PASSES, "utf-8")
    return path


class TestOpt:
    def test_table_and_file(self, chain: Path, passes: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.onnx"
        result = passlib_command("opt", chain, "-o", out, "-l", passes, "--passes", "drop_clip")
        assert (result.returncode, result.stderr) == (0, "")
        rows = [line.split() for line in result.stdout.splitlines()]
        assert ["Clip", "1", "0", "*"] in rows
        assert ["total", "6", "5"] in rows
        assert "Clip" not in {node.op for node in passlib.load(out).symbol.nodes()}

    def test_simplify_runs_by_default(
        self, chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out.onnx"
        assert main(["opt", str(chain), "-o", str(out), "--json"]) == 0
        report = json.loads(capsys.readouterr().out)[0]
        assert "removeNoOps" in {step["pass"] for step in report["steps"]}
        expected = passlib.simplify(chain)
        assert report["nodes"] == {
            "before": 6,
            "after": sum(not n.is_variable for n in expected.symbol.nodes()),
        }
        operators = [node.op for node in passlib.load(out).symbol.nodes()]
        assert operators == [node.op for node in expected.symbol.nodes()]

    @pytest.mark.parametrize("more", [[], ["--isolate"]])
    def test_simplify_without_a_pass(
        self, more: list[str], chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = ["opt", str(chain), "-o", str(tmp_path / "out.onnx"), "--json", *more]
        assert main([*given, "--skip", "removeNoOps"]) == 0
        report = json.loads(capsys.readouterr().out)[0]
        assert "removeNoOps" not in {step["pass"] for step in report["steps"]}
        assert main([*given, "--skip", "removeNoOp"]) == 1
        assert "--skip removeNoOp: the pipeline has no such pass" in capsys.readouterr().err

    def test_report(self, chain: Path, passes: Path, tmp_path: Path) -> None:
        page = tmp_path / "pages" / "report.html"
        result = passlib_command(
            *("opt", chain, "-o", tmp_path / "out.onnx", "-l", passes, "--passes", "drop_clip"),
            *("--check", "2", "--report", page),
        )
        assert result.stdout.splitlines()[-2] == str(page)
        text = page.read_text("utf-8")
        assert '"title":"Numbers, on 2 inputs"' in text
        assert '"title":"Steps"' in text
        assert '"compares":true' in text

    @pytest.mark.parametrize(("limit", "left"), [(0, 0), (1, 1), (2, 2), (9, 2)])
    def test_rewrite_limit(
        self, limit: int, left: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = save(NEGATIONS, tmp_path / "model.onnx")
        source = tmp_path / "replace.py"
        source.write_text(REPLACE.replace("NAME", f"replace{limit}"), "utf-8")
        out = tmp_path / "out.onnx"
        given = ["opt", str(model), "-o", str(out), "-l", str(source), "--rewrite-limit"]
        assert main([*given, str(limit), "--passes", f"replace{limit}"]) == 0
        assert f"rewrites: {left} of 2" in capsys.readouterr().out
        ops = [node.op for node in passlib.load(out).symbol.nodes()]
        assert ops.count("Identity") == left

    def test_skip(self, chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        given = ["opt", str(chain), "-o", str(tmp_path / "out.onnx"), "--json", "--passes"]
        text = "mergeEqualNodes, repeat<2>(removeDeadNodes), repeat<2>(mergeEqualNodes)"
        assert main([*given, text, "--skip", "mergeEqualNodes"]) == 0
        steps = json.loads(capsys.readouterr().out)[0]["steps"]
        assert {step["step"] for step in steps} == {"removeDeadNodes"}
        assert main([*given, text, "--skip", "fold"]) == 1
        assert "--skip fold: the pipeline has no such pass" in capsys.readouterr().err

    def test_several_models_go_to_a_folder(self, chain: Path, tmp_path: Path) -> None:
        other = save(CHAIN, tmp_path / "other.onnx")
        result = passlib_command("opt", chain, other, "-o", tmp_path / "out")
        assert result.returncode == 0
        assert {path.name for path in (tmp_path / "out").iterdir()} == {
            "batch.jsonl",
            "chain.onnx",
            "other.onnx",
        }

    def test_time_and_dump(self, chain: Path, tmp_path: Path) -> None:
        result = passlib_command(
            *("opt", chain, "-o", tmp_path / "out.onnx", "--time"),
            *("--passes", "removeDeadNodes", "--dump", tmp_path / "dump"),
        )
        assert "removeDeadNodes  " in result.stdout
        assert (tmp_path / "dump" / "001-removeDeadNodes" / "model.onnx").exists()


STATUS = [
    # Passes, further arguments, the exit code, and what the message says.
    ("drop_clip", ["--check"], 0, ""),
    ("double_weights", ["--check"], 4, "results differ: y: different (values)"),
    ("double_weights", ["--check-each"], 4, "the model after double_weights computes other values"),
    ("drop_clip", ["--check", "0"], 1, "--check: must be at least 1"),
    ("raise_error", [], 2, "raise_error' (Python function"),
    ("misspell", ["--verify-each"], 2, "has no operator 'Relo'"),
    ("drop_clap", [], 1, "did you mean 'drop_clip'?"),
    ("drop_clip{level=2}", [], 1, "level"),
    ("drop_clip,", [], 1, "expected the name of a pass"),
]


def test_agreement_is_told(chain: Path, passes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    more = ("-l", passes, "--passes", "drop_clip", "--check", "2")
    result = passlib_command("opt", chain, "-o", out, *more)
    assert "results agree on 2 inputs; largest difference 0 of the tolerance\n" in result.stdout
    (facts,) = json.loads(passlib_command("opt", chain, "-o", out, *more, "--json").stdout)
    assert facts["checked"] == {"input_sets": 2, "share": 0.0}


def test_what_differs_is_not_written(chain: Path, passes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    more = ("-l", passes, "--passes", "double_weights", "--check")
    result = passlib_command("opt", chain, "-o", out, *more)
    assert f"{out} is not written" in result.stderr
    assert not out.exists()


class TestExitCodes:
    @pytest.mark.parametrize(("text", "more", "status", "message"), STATUS)
    def test_status(
        self,
        text: str,
        more: list[str],
        status: int,
        message: str,
        chain: Path,
        passes: Path,
        tmp_path: Path,
    ) -> None:
        out = tmp_path / "out.onnx"
        result = passlib_command("opt", chain, "-o", out, "-l", passes, "--passes", text, *more)
        assert result.returncode == status, result.stderr
        assert message in result.stderr
        assert result.stderr.count("\n") == bool(message)
        assert out.exists() == (status == 0)

    def test_tolerances_and_inputs(self, chain: Path, passes: Path, tmp_path: Path) -> None:
        np.savez(tmp_path / "in.npz", x=np.full((2, 4), -1, np.float32))
        given = ("opt", chain, "-o", tmp_path / "out.onnx", "-l", passes)
        # Adds w twice instead of once: the results differ by w, of 4 at most.
        given = (*given, "--passes", "double_weights", "--inputs", tmp_path / "in.npz", "--check")
        assert passlib_command(*given).returncode == 4
        assert passlib_command(*given, "--atol", "4").returncode == 0

    def test_a_library_that_is_none(self, chain: Path, tmp_path: Path) -> None:
        result = passlib_command("opt", chain, "-o", tmp_path / "o.onnx", "-l", chain)
        assert result.returncode == 1
        assert "cannot load library" in result.stderr


class TestPasses:
    def test_list(self, passes: Path) -> None:
        result = passlib_command("passes", "-l", passes)
        rows = [line.split() for line in result.stdout.splitlines()]
        assert ["drop_clip", "all", "Takes", "Clip", "out."] in rows
        assert "foldBatchNormalization" in {row[0] for row in rows}

    def test_one(self, passes: Path) -> None:
        result = passlib_command("passes", "drop_clip", "-l", passes)
        assert result.stdout.startswith("drop_clip: Takes Clip out.\n")
        found = passlib_command("passes", "drop_clip", "-l", passes, "--json")
        assert json.loads(found.stdout)["options"] == []

    def test_a_named_pipeline(self) -> None:
        listed = [line.split()[0] for line in passlib_command("passes").stdout.splitlines()]
        assert listed[1:3] == ["simplify", "clean"]
        result = passlib_command("passes", "simplify")
        assert "max_growth: a whole number of at least 0" in result.stdout

    @pytest.mark.parametrize(
        ("name", "meant"), [("removeDeadNode", "removeDeadNodes"), ("simplfy", "simplify")]
    )
    def test_an_unknown_one(self, name: str, meant: str) -> None:
        result = passlib_command("passes", name)
        assert result.returncode == 1
        assert f"did you mean {meant!r}?" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), r"wrote {out}: 6 -> 4 operators, [\d.]+ k?B -> [\d.]+ k?B, in \d+\.\d s"),
        (("--opset", "18", "--passes", "removeDeadNodes"), r"wrote {out}: 6 -> 6 operators.*"),
        (("--passes", "removeDeadNodes"), r"wrote {out}: nothing to change, in \d+\.\d s"),
        (("--quiet",), ""),
    ],
)
def test_the_summary(options: Sequence[str], words: str, chain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    result = passlib_command("opt", chain, "-o", out, *options)
    last = result.stdout.splitlines()[-1:] or [""]
    assert re.fullmatch(words.format(out=re.escape(str(out))), last[0]), result


def test_the_summary_of_a_change_in_a_function(tmp_path: Path) -> None:
    model = """<ir_version: 9, opset_import: ["": 17, "l": 1]>
    g (float[2] x) => (float[2] y) { y = l.f(x) }
    <domain: "l", opset_import: ["": 17]>
    f (a) => (b) { c = Relu(a)  d = Relu(c)  b = Identity(d) }"""
    paths = [save(model, tmp_path / "a.onnx"), tmp_path / "b.onnx", tmp_path / "c.onnx"]
    said = []
    for before, after in itertools.pairwise(paths):
        result = passlib_command("opt", before, "-o", after)
        said.append(result.stdout.splitlines()[-1].partition(": ")[2].partition(",")[0])
    assert said == ["1 -> 1 operators", "nothing to simplify"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["simplify", "m"], "there is no command 'simplify'; did you mean 'opt'?"),
        (["show", "m"], "there is no command 'show'; did you mean 'inspect'?"),
        (["check", "m"], "there is no command 'check'; did you mean 'validate'?"),
        (["valdate", "m"], "there is no command 'valdate'; did you mean 'validate'?"),
        (["zzz"], "there is no command 'zzz'; see passlib --help"),
        (["opt", "m", "-o", "n", "--pases", "clean"], "no option --pases; did you mean '--passes'"),
        (["opt", "m", "-o", "n", "--skp=clean"], "no option --skp; did you mean '--skip'"),
        (["opt", "m", "-o", "-"], "'-', standard input or output, is not supported"),
        (["opt", "-", "-o", "n"], "'-', standard input or output, is not supported"),
        (["opt", "m", "-o", "n", "--shape", "x:1"], "--fix-shape sets the shape of an input"),
        (["opt", "m", "-o", "n", "--dump", __file__], "expected a folder, found a file"),
        (["opt", "m", "-o", "n", "--report", "r.pdf"], "this writes an HTML page, not .pdf"),
        (["view", "m", "-o", "v.png"], "this writes an HTML page, not .png"),
    ],
)
def test_commands_that_do_not_fit(command: list[str], words: str, chain: Path) -> None:
    given = [str(chain) if word == "m" else word for word in command]
    result = passlib_command(*given)
    assert (result.returncode, result.stdout) == (1, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("op", "version", "words"),
    [
        ("Relu", 99, "its operator set is 99, and the newest that the installed onnx knows is"),
        ("Cnov", 17, "ONNX has no operator Cnov (node 'n')"),
        ("Relu", 17, ""),
    ],
)
def test_what_a_runtime_may_not_know(op: str, version: int, words: str, tmp_path: Path) -> None:
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node(op, ["x"], ["y"], name="n")
    other = onnx.helper.make_node("Other", ["y"], ["z"], domain="own")
    graph = onnx.helper.make_graph([node, other], "g", [value("x", 1, [2])], [value("z", 1, [2])])
    sets = [onnx.helper.make_opsetid("", version), onnx.helper.make_opsetid("own", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets), tmp_path / "m.onnx")
    result = passlib_command("opt", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx")
    assert result.returncode == 0
    assert ("warning: " in result.stderr) == bool(words)
    assert words in result.stderr
    both = passlib_command("opt", tmp_path / "m.onnx", "--jobs", "1", "-o", tmp_path / "several")
    assert both.stderr == result.stderr
    again = passlib_command("opt", tmp_path / "m.onnx", "--jobs", "1", "-o", tmp_path / "several")
    assert (again.stderr, "1 skipped" in again.stdout) == (result.stderr, True)
