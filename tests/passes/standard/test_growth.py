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


CHAINS = [
    ("Add of a number", "mergeFactors"),  # the uses of the shared number are not searched
    ("Unsqueeze", "cancelTransposes"),  # each chain is followed once
    ("Heads", "outline"),  # layers that were compared with all are not compared again
]


@pytest.mark.parametrize(("link", "name"), CHAINS)
def test_steps_of_one_pass_on_chains(link: str, name: str) -> None:
    models = [graph(link, "chain", count) for count in (100, 1600)]
    passlib.load(models[0]).optimize_for(name)  # imports
    assert growth(lambda model: model.optimize_for(name), models) <= GROWTH
