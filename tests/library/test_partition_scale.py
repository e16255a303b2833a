"""Partitioning of large graphs of any shape; bench/growth.py measures that its time is linear."""

from __future__ import annotations

import pytest

import passlib
from partition_graphs import graph_text
from partition_shapes import OPS, SHAPES


@pytest.mark.usefixtures("partitioners")
@pytest.mark.sample(4)
@pytest.mark.parametrize("backend", ["partitionSupported", "partitionSelected"])
@pytest.mark.parametrize("shape", SHAPES)
def test_subgraphs_of_large_graphs(shape: str, backend: str) -> None:
    make, count = SHAPES[shape]
    size = 20_000
    nodes = make(size)
    symbol = passlib.sym.load_json(graph_text(nodes, [len(nodes) - 1]))
    subgraphs = symbol.optimize_for(backend, ops=OPS).graph.operators().get("_partition", 0)
    assert subgraphs == (count(size) or subgraphs)
    assert subgraphs > 0
