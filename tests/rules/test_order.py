"""The order of rules in a book makes no difference for what is left of a model."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import passlib as pl
import random_graphs
from passlib.passes.rule_examples import build
from passlib.passes.rules import Rules, books

# The rules of decompose are never applied together with the others, whose work they undo.
RULES = [rule for book in books() for rule in book if rule.group != "decompose"]
GROUPS = sorted({rule.group for rule in RULES} - {"", "removeZeros"})
OPSET = 21


def shuffled(seed: int) -> Rules:
    texts = [rule.text for rule in RULES]
    random.Random(seed).shuffle(texts)
    return Rules("\n\n".join(texts), registers=False)


BOOKS = [shuffled(seed) for seed in range(3)]


def operators(model: pl.Model) -> Counter[str]:
    return Counter(node.op for node in model.symbol.nodes() if node.op != "null")


def assert_same(model: pl.Model) -> None:
    first, *others = (operators(book(model, only=GROUPS)) for book in BOOKS)
    assert others == [first, first]


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_the_order_of_rules_makes_no_difference(name: str) -> None:
    rule = next(each for each in RULES if each.name == name)
    for example in rule.examples:
        if all(low <= OPSET <= (high or OPSET) for domain, low, high in rule.sets if not domain):
            model = build(example.before, OPSET).model
            assert_same(model)


@pytest.mark.parametrize("seed", range(60))
def test_the_order_makes_no_difference_for_random_graphs(seed: int) -> None:
    assert_same(pl.load(random_graphs.draw(seed).model()))
