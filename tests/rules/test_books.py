"""The rules that come with passlib do what their examples show."""

from __future__ import annotations

import pytest
from onnx import parser

import rule_page
from passlib.model import load
from passlib.passes.rule_examples import problems
from passlib.passes.rules import Rule, books

RULES = [rule for book in books() for rule in book]


@pytest.mark.parametrize("opset", [7, 11, 13, 17, 18, 21, None])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_does_what_its_examples_show(rule: Rule, opset: int | None) -> None:
    assert list(problems(rule, opset)) == []


@pytest.mark.parametrize(("scale", "left"), [(1.0, ["Relu"]), (1.05, ["Resize", "Relu"])])
def test_nearest_elements_by_another_scale_are_others(scale: float, left: list[str]) -> None:
    """19 elements stay 19 with a scale of 1.05, but ONNX defines that some are repeated."""
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 13]> g (float[19] x) => (float[19] y)
        <float[1] s = {{{scale}}}> {{
        h = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric"> (x, , s)
        y = Relu (h) }}""")
    (rule,) = (each for each in RULES if each.name == "resizeOfNothing")
    made = rule.rules(load(model), only=[rule.name], target=rule.target).to_onnx_proto()
    assert [node.op_type for node in made.graph.node] == left


def test_the_pages_list_functions_and_rules() -> None:
    assert rule_page.PAGE.read_text() == rule_page.page()
    assert rule_page.CATALOGUE.read_text() == rule_page.catalogue()


def test_the_rules_of_a_group_are_all_exact_or_none() -> None:
    """Exact passes are groups of exact rules."""
    kinds: dict[str, set[bool]] = {}
    for rule in RULES:
        if rule.group and rule.group != "decompose":  # which is no exact pass
            kinds.setdefault(rule.group, set()).add(rule.exact)
    assert [group for group, found in kinds.items() if len(found) > 1] == []
