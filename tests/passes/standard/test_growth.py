"""The work of simplification grows with the graph, and no faster."""

from __future__ import annotations

import pytest

import passlib
from growing_graphs import GROWTH, LINKS, SHAPES, graph, growth


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("link", LINKS)
def test_steps_for_each_operator(link: str, shape: str) -> None:
    models = [graph(link, shape, count) for count in (60, 240)]
    passlib.load(models[0]).simplify()  # imports
    assert growth(lambda model: model.simplify(), models) <= GROWTH


def test_a_chain_with_one_constant() -> None:
    """The uses of a shared constant are not searched for each operator."""
    models = [graph("Add of a number", "chain", count) for count in (100, 1600)]
    passlib.load(models[0]).optimize_for("mergeFactors")  # imports
    assert growth(lambda model: model.optimize_for("mergeFactors"), models) <= GROWTH
