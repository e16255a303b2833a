"""passlib's rules on models drawn from their examples: the same results."""

from __future__ import annotations

import pytest

from rule_sweep import check, rules

RULES = rules()
WITHOUT_KERNEL = {"partsOfSwish"}
"""Rules of operators that ONNX Runtime refuses."""


@pytest.mark.parametrize("name", RULES)
def test_a_rule_on_models_that_match_it_or_nearly(name: str) -> None:
    found = [each for number in range(8) for each in check(RULES[name], number)]
    assert [text for state, text in found if state == "wrong"] == []
    expected = "refused" if name in WITHOUT_KERNEL else "changed"
    assert expected in {state for state, _ in found}
