"""``passlib rules``, and ``--rules`` of other commands."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from commands import passlib_command

RULES = """\
rule reluTwiceHere "Relu of Relu is Relu."
  group mine
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
  example
    y = Relu(Relu(x: float[2]))
    => y = Relu(x)
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "mine.rules"
    path.write_text(RULES)
    return path


def test_rules_are_listed_and_shown(rules: Path) -> None:
    listed = passlib_command("rules", "--rules", str(rules))
    assert "reluTwiceHere" in listed.stdout
    shown = passlib_command("rules", "--rules", str(rules), "mine")
    assert shown.stdout == RULES
    (facts,) = json.loads(passlib_command("rules", "--rules", str(rules), "--json").stdout)
    assert (facts["name"], facts["exact"], facts["lowers"]) == ("reluTwiceHere", True, ["nodes"])
    assert "transposeOfTranspose" in passlib_command("rules").stdout
    missing = passlib_command("rules", "nothing")
    assert missing.returncode == 1
    assert "there is no rule or group 'nothing'" in missing.stderr


def test_rules_are_checked_by_their_examples(rules: Path) -> None:
    good = passlib_command("rules", "--check", str(rules))
    assert good.returncode == 0
    assert good.stdout.endswith("1 rule, all as shown\n")
    rules.write_text(RULES[:-2] + "Relu(x))\n")
    bad = passlib_command("rules", "--check", str(rules))
    assert bad.returncode != 0
    rules.write_text(RULES.replace("=> y = Relu(x)\n", "=> y = Neg(x)\n", 1))
    bad = passlib_command("rules", "--check", str(rules))
    assert bad.returncode == 4
    assert "rule reluTwiceHere, example 1" in bad.stdout


@pytest.mark.parametrize("options", [[], ["--isolate"]], ids=["here", "isolated"])
def test_a_model_is_changed_by_rules_of_a_file(
    rules: Path, tmp_path: Path, options: list[str]
) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
    model = onnx.parser.parse_model(text + "{ a = Relu(x) b = Relu(a) y = Neg(b) }")
    onnx.save(model, tmp_path / "m.onnx")
    made = tmp_path / "out.onnx"
    done = passlib_command(
        "opt", str(tmp_path / "m.onnx"), "-o", str(made), "--rules", str(rules), *options
    )
    assert done.returncode == 0, done.stderr
    assert [node.op_type for node in onnx.load(made).graph.node] == ["Relu", "Neg"]
