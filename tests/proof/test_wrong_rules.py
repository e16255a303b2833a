"""Wrong rules: none is proven, by symbols alone, and most have a counterexample."""

from __future__ import annotations

import pytest

import passlib
from passlib.proof.counterexamples import search
from passlib.proof.prover import prove
from wrong_rules import WRONG

# Either nothing is found among a few models, or the engine refuses the example itself.
UNSEEN: set[str] = {"absOfWholeSums"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_not_proven(name: str) -> None:
    (rule,) = passlib.Rules(WRONG[name], registers=False)
    assert prove(rule, limit=6).reason


@pytest.mark.parametrize("name", sorted(WRONG.keys() - UNSEEN))
def test_a_wrong_rule_has_a_counterexample(name: str) -> None:
    (rule,) = passlib.Rules(WRONG[name], registers=False)
    found, _ = search(rule, 150)
    assert found is not None
