"""The commands that show, check and convert models."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

import passlib
from commands import passlib_command
from onnx_models import CHAIN, NESTED, save
from passlib.cli import main
from places import DATA

SQUEEZENET = DATA / "mxnet" / "models" / "squeezenet1.1"

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
text (string[N] x) => (string[N] y)
{ y = Identity(x) }
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return save(CHAIN, tmp_path / "chain.onnx")


SHAPES = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (float[N, 3] x, string[k] t) => (float[L, 4] u, seq(float[L, 4]) q, float[M] w)
<float[3, 4] b = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}>
{
  h = f.product(x, b)
  c = Concat<axis = 0>(h, h)
  u, m = Dropout(c)
  q = SequenceConstruct(h)
  w = f.Unknown(t)
}
<domain: "f", opset_import: ["": 17]>
product (p, q) => (o) { o = MatMul(p, q) }
"""


class TestInspect:
    def test_summary(self, chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(chain), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["dialect"] == "onnx"
        assert facts["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["N", 4]}]
        assert [output["name"] for output in facts["outputs"]] == ["y", "z"]
        assert facts["outputs"][1]["shape"] == ["N", 4]
        assert (facts["opsets"], facts["ir_version"]) == ({"ai.onnx": 17}, 8)
        assert facts["operators"]["Relu"] == 1
        assert (facts["nodes"], facts["weights"], facts["weight_bytes"]) == (6, 2, 32)

    def test_text(self, chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(chain)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "dialect       onnx"
        assert lines[1] == "inputs        x float32 (N, 4)"
        assert lines[2] == "outputs       y float32 (N, 4)"

    def test_operators(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(SQUEEZENET), "--ops", "--json"]) == 0
        counts = {row["operator"]: row["count"] for row in json.loads(capsys.readouterr().out)}
        nodes = passlib.load(SQUEEZENET).symbol.nodes()
        assert counts == {
            op: sum(node.op == op for node in nodes)
            for op in {node.op for node in nodes}
            if op != "null"
        }

    def test_nested_graphs_are_counted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """As in the tables of opt and in what reduce prints."""
        path = str(save(NESTED, tmp_path / "nested.onnx"))
        assert main(["inspect", path, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["nodes"], facts["operators"]["If"]) == (8, 2)

    def test_nothing_and_text(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = str(save(TEXT, tmp_path / "text.onnx"))
        assert main(["inspect", path]) == 0
        assert "inputs        x string (N)\n" in capsys.readouterr().out
        assert main(["inspect", path, "--weights"]) == 0
        assert capsys.readouterr().out == "none\n"

    def test_weights(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(SQUEEZENET), "--weights", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        weights = passlib.load(SQUEEZENET).args
        assert {row["name"]: row["bytes"] for row in rows} == {
            name: array.nbytes for name, array in weights.items()
        }

    def test_shapes(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "shapes.onnx"
        onnx.save(onnx.parser.parse_model(SHAPES), path)
        assert main(["inspect", str(path), "--shapes", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [tuple(row.values()) for row in rows] == [
            ("x", None, "float32", ["N", 3]),
            ("t", None, "string", ["k"]),
            ("h", "product", "float32", ["N", 4]),
            ("c", "Concat", "float32", ["2*N", 4]),
            ("u", "Dropout", "float32", ["2*N", 4]),
            ("m", "Dropout", "bool", ["2*N", 4]),
            ("q", "SequenceConstruct", "seq(float[N, 4])", None),
            ("w", "Unknown", "float32", ["M"]),
        ]
        assert main(["inspect", str(path), "--shapes"]) == 0
        assert "c      Concat             float32 (2*N, 4)\n" in capsys.readouterr().out

    def test_costs(self, chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(chain), "--costs", "--json", "--shape", "x:3,4"]) == 0
        facts = json.loads(capsys.readouterr().out)
        rows = {row["operator"]: row for row in facts["rows"]}
        assert rows["Relu"] == {
            "operator": "Relu",
            "nodes": 1,
            "flops": 12,
            "bytes_read": 48,
            "bytes_written": 48,
            "weight_bytes": 0,
        }
        assert facts["total"]["flops"] == sum(row["flops"] for row in rows.values())
        assert facts["not_counted"] == []
        assert main(["inspect", str(chain), "--costs", "node"]) == 0
        printed = capsys.readouterr().out
        assert "Relu_0" in printed
        assert "peak of results: " in printed
        assert main(["inspect", str(chain), "--shape", "x:3,4"]) == 1

    def test_one_node(self, chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(chain), "--node", "Add_1", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["operator"], facts["outputs"]) == ("Add", 1)
        assert facts["inputs"] == [{"node": name, "output": 0} for name in ("Relu_0", "w")]
        assert facts["users"] == ["Clip_2"]

    def test_an_unknown_node(self, chain: Path) -> None:
        result = passlib_command("inspect", chain, "--node", "Add_2")
        assert result.returncode == 1
        assert result.stderr.startswith(
            "passlib inspect: the model has no node 'Add_2'; near it are Add_1"
        )


class TestValidate:
    def test_sound_and_unsound_files(self, chain: Path, tmp_path: Path) -> None:
        bad = tmp_path / "bad-symbol.json"
        bad.write_text('{"nodes": 3}', "utf-8")
        result = passlib_command("validate", chain, bad)
        assert result.returncode == 3
        lines = result.stdout.splitlines()
        assert lines[0] == f"{chain}: fine"
        assert lines[1].startswith(f"{bad}: error: ")

    def test_a_missing_file(self, tmp_path: Path) -> None:
        result = passlib_command("validate", tmp_path / "x.onnx")
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == f"passlib validate: {tmp_path}/x.onnx: there is no such model\n"


class TestConvert:
    def test_mxnet(self, tmp_path: Path) -> None:
        target = tmp_path / "squeezenet.onnx"
        given = ["convert", str(SQUEEZENET), str(target), "--shape", "data:1,3,224,224"]
        assert main([*given, "--opset", "17"]) == 0
        assert onnx.load(target).opset_import[0].version == 17

    def test_weights_that_are_elsewhere(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        graph, target = tmp_path / "net-symbol.json", tmp_path / "net.onnx"
        graph.write_bytes(Path(f"{SQUEEZENET}-symbol.json").read_bytes())
        command = ["convert", str(graph), str(target), "--shape", "data:1,3,224,224"]
        assert main(command) == 1
        assert "there was no net*.params next to the graph; give one" in capsys.readouterr().err
        assert not target.exists()
        assert main([*command, "--no-weights"]) == 0
        assert len(passlib.load(target).inputs) == 53
        assert main([*command, "--params", f"{SQUEEZENET}-0000.params"]) == 0
        assert passlib.load(target).inputs == ["data"]
        assert main([*command, "--epoch", "4"]) == 1
        assert "there are no weights of epoch 4" in capsys.readouterr().err

    @pytest.mark.parametrize("shape", ["data", "data:1,x", "data:-3", ":1,3"])
    def test_a_wrong_shape(
        self, shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ["convert", str(SQUEEZENET), str(tmp_path / "x.onnx"), "--shape", shape]
        assert main(arguments) == 1
        assert f"--shape {shape}: write name:1,3,224,224" in capsys.readouterr().err


class TestErrors:
    def test_there_is_no_traceback_unless_asked_for(self, tmp_path: Path) -> None:
        missing = tmp_path / "x.onnx"
        assert "Traceback" not in passlib_command("inspect", missing).stderr
        assert "Traceback" in passlib_command("inspect", missing, "--traceback").stderr

    def test_a_damaged_file_is_unsound(self, chain: Path) -> None:
        chain.write_bytes(chain.read_bytes()[:-7])
        result = passlib_command("inspect", chain)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr.count("\n") == 1

    def test_a_closed_pipe_is_no_error(self, chain: Path) -> None:
        import subprocess
        import sys

        command = f"{sys.executable} -m passlib inspect {chain} | true; echo ${{PIPESTATUS[0]}}"
        result = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=False
        )
        assert (result.stdout, result.stderr) == ("0\n", "")


class TestPages:
    def test_view(self, chain: Path, tmp_path: Path) -> None:
        result = passlib_command("view", chain, folder=tmp_path)
        assert result.stdout == "chain.onnx.html\n", result.stderr
        text = (tmp_path / "chain.onnx.html").read_text("utf-8")
        assert text.startswith("<!doctype html>")
        assert '"compares":false' in text

    @pytest.mark.parametrize("more", [["-o", "out.html"], ["--format", "html", "-o", "out.html"]])
    def test_diff(self, more: list[str], chain: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.onnx"
        passlib.load(chain).rename({"w": "v"}).save(other)
        result = passlib_command("diff", chain, other, *more, folder=tmp_path)
        assert result.stdout == "out.html\n", result.stderr
        assert '"compares":true' in (tmp_path / "out.html").read_text("utf-8")
        printed = passlib_command("diff", chain, other, "--format", "html")
        assert printed.stdout.startswith("<!doctype html>")
