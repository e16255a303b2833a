"""Wrong rules: none is proven, by symbols alone, and most have a counterexample."""

from __future__ import annotations

import pytest

import passlib
from passlib.proof.counterexamples import search
from passlib.proof.outcomes import shipped
from passlib.proof.prover import prove
from wrong_rules import WRONG

# Either nothing is found among a few models, or the engine refuses the example itself.
UNSEEN = {
    "absOfWholeSums",
    "castToText",
    "checkOfBlocks",
    "checkOfWhatIsRead",
    "windowOfMoreThanIsThere",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_not_proven(name: str) -> None:
    (rule,) = passlib.Rules(WRONG[name], registers=False)
    assert prove(rule, limit=6).reason


@pytest.mark.parametrize("name", sorted(WRONG.keys() - UNSEEN))
def test_a_wrong_rule_has_a_counterexample(name: str) -> None:
    (rule,) = passlib.Rules(WRONG[name], registers=False)
    found, _ = search(rule, 150)
    assert found is not None


CHANGED = [
    ("clipOfClip", ", not (given(c) and given(b)) or value(c) <= value(b)", ""),
    ("partsOfTrilu", "Not(Less(", "Not(Greater("),
    ("partsOfSoftplus", "Neg(Abs(x))", "Neg(x)"),
    ("partsOfElu", "Less(x, 0.0)", "Less(x, 1.0)"),
    ("partsOfDepthToSpace", '$m = "DCR"', '$m = "CRD"'),
    ("paddedBetweenEqualScales", "not given(c) or value(c) = 0", "true"),
    ("clipBeforeQuantize", "value(high) >= (255", "value(high) >= (254"),
    ("softmaxWithoutNaN", ", not given(h) or finite(h)", ""),
    ("reduceOfOne", ", len($a) > 0 or $n = 1", ""),
    ("layerNormalization", ", k > 0", ""),
    ("rmsNormalization", ", k > 0", ""),
    ("resizeOfNothing", "not given(s) or all(value(s) = 1)", "true"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), CHANGED, ids=lambda each: each[:20])
def test_a_rule_of_passlib_with_a_mistake_is_not_proven(name: str, right: str, wrong: str) -> None:
    (text,) = (each.text for each in shipped() if each.name == name)
    assert right in text
    (rule,) = passlib.Rules(text.replace(right, wrong), registers=False)
    assert prove(rule, limit=6).reason
