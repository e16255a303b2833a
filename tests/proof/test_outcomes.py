"""Kept results of proofs, the command, and the method."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import passlib
from commands import passlib_command
from passlib.proof import outcomes, prove
from passlib.proof.outcomes import hash_of, hash_of_meanings, kept, shipped

RULES = """
rule reluOfNeg "A sign moves out of Relu."
  onnx 13..
  y = Relu(Neg(x))
  => y = Neg(Relu(x))
  exact
  enables
  example
    y = Relu(Neg(x: float[2]))
    => y = Neg(Relu(x))

rule absOfNegation "Abs needs no sign."
  onnx 13..
  y = Abs(Neg(x))
  => y = Abs(x)
  exact
  example
    y = Abs(Neg(x: float[2, n]))
    => y = Abs(x)
"""


def test_each_rule_has_a_kept_result_of_its_text_and_the_meanings() -> None:
    """After a change of a rule or of a meaning, run ``make prove``."""
    assert [rule.name for rule in shipped() if hash_of(rule) not in kept()] == []
    assert kept().keys() - {hash_of(rule) for rule in shipped()} == set()


def test_a_result_is_kept_for_the_meanings_of_its_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operators = [frozenset({"Conv", "Mul"}), frozenset({"Relu"})]
    before = [hash_of_meanings.__wrapped__(each) for each in operators]
    code, used = outcomes._definitions()["_conv"]
    changed = {**outcomes._definitions(), "_conv": (f"{code} ", used)}
    monkeypatch.setattr(outcomes, "_definitions", lambda: changed)
    after = [hash_of_meanings.__wrapped__(each) for each in operators]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_no_rule_is_refuted_and_kept_results_are_fast() -> None:
    start = time.process_time()
    found = list(prove(shipped()))
    assert time.process_time() - start < 5
    assert [each.rule for each in found if each.state == "refuted"] == []
    assert all(bool(each.reason) == (each.state == "undecided") for each in found)
    assert all(each.cases for each in found if each.is_proven)


def test_rules_prove_themselves() -> None:
    wrong, right = passlib.Rules(RULES, registers=False).prove(limit=10)
    assert (wrong.rule, wrong.state, right.rule, right.state) == (
        "reluOfNeg", "refuted", "absOfNegation", "exact",
    )  # fmt: skip
    assert wrong.counterexample is not None
    assert right.cases > 1
    assert right.tried > 1


def test_a_counterexample_is_saved_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(RULES, "utf-8")
    found = passlib_command("prove", str(path), "--save", str(tmp_path / "found"), "--jobs", "2")
    assert found.returncode == 4
    assert "reluOfNeg: refuted" in found.stdout
    assert "absOfNegation: proven, bit for bit" in found.stdout
    inputs = dict(np.load(tmp_path / "found" / "reluOfNeg.inputs.npz"))
    one, other = (
        onnxruntime.InferenceSession(
            str(tmp_path / "found" / f"reluOfNeg.{side}.onnx"),
            providers=["CPUExecutionProvider"],
        ).run(None, inputs)[0]
        for side in ("before", "after")
    )
    assert not np.array_equal(one, other)


def test_outcomes_as_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(RULES, "utf-8")
    found = json.loads(passlib_command("prove", str(path), "--json").stdout)
    assert [each["state"] for each in found] == ["refuted", "exact"]
    kept_ones = json.loads(passlib_command("prove", "--only", "identity", "--json").stdout)
    assert [(each["rule"], each["state"]) for each in kept_ones] == [("identity", "exact")]
