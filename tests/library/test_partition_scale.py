"""Partitioning takes linear time for graphs of any shape."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import passlib
from partition_graphs import graph_text
from plugin_build import EXTRA_FLAGS

pytestmark = pytest.mark.usefixtures("partitioners")

Nodes = list[tuple[Any, ...]]


def chain(size: int, every: int) -> Nodes:
    """Make a chain of operators; one in ``every`` is supported."""
    operators = [("exp" if i % every == 0 else "tanh", f"n{i}", [i]) for i in range(size)]
    return [("null", "x", []), *operators]


def ladder(size: int) -> Nodes:
    """Connect supported operators directly and through an unsupported one."""
    nodes: Nodes = [("null", "x", []), ("exp", "s", [0])]
    for i in range(0, size, 2):
        last = len(nodes) - 1
        nodes.append(("tanh", f"u{i}", [last]))
        nodes.append(("elemwise_add", f"s{i}", [last, last + 1]))
    return nodes


def star(size: int) -> Nodes:
    """Connect the first operator to all others, and all others to the last."""
    leaves = [("exp" if i % 2 else "tanh", f"n{i}", [1]) for i in range(size)]
    total = ("add_n", "sum", list(range(2, size + 2)), {"num_args": str(size)})
    return [("null", "x", []), ("exp", "hub", [0]), *leaves, total]


def long_ways(size: int) -> Nodes:
    """Make supported pairs, all connected through the same long chain."""
    count = size // 4
    nodes: Nodes = [("null", "x", []), *[("exp", f"a{i}", [0]) for i in range(count)]]
    nodes.append(("add_n", "all", list(range(1, count + 1)), {"num_args": str(count)}))
    nodes += [("tanh", f"t{i}", [count + 1 + i]) for i in range(2 * count)]
    end = len(nodes) - 1
    pairs = [("elemwise_mul", f"b{i}", [i + 1, end]) for i in range(count)]
    return [*nodes, *pairs, ("add_n", "sum", list(range(end + 1, end + 1 + count)))]


def residual(size: int) -> Nodes:
    """Make a supported stream with parallel blocks that have one unsupported operator."""
    nodes: Nodes = [("null", "x", []), ("exp", "s", [0])]
    for i in range(0, size, 4):
        stream = len(nodes) - 1
        nodes.append(("exp", f"q{i}", [stream]))
        nodes.append(("tanh", f"t{i}", [stream + 1]))
        nodes.append(("exp", f"o{i}", [stream + 2]))
        nodes.append(("elemwise_add", f"s{i}", [stream, stream + 3]))
    return nodes


SHAPES: dict[str, tuple[Callable[[int], Nodes], Callable[[int], int | None]]] = {
    # With the number of subgraphs where it is obvious.
    "every second": (lambda size: chain(size, 2), lambda size: size // 2),
    "all": (lambda size: chain(size, 1), lambda size: 1),
    "ladder": (ladder, lambda size: size // 2 + 1),
    "star": (star, lambda size: 2),
    "long ways": (long_ways, lambda size: None),
    "residual": (residual, lambda size: None),
}
OPS = "exp,elemwise_add,elemwise_mul,add_n"


@pytest.mark.sample(4)
@pytest.mark.parametrize("backend", ["partitionSupported", "partitionSelected"])
@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_graph(shape: str, backend: str) -> None:
    make, count = SHAPES[shape]
    spent = []
    for size in (20_000, 80_000):
        nodes = make(size)
        text = graph_text(nodes, [len(nodes) - 1])
        start = time.process_time()
        symbol = passlib.sym.load_json(text)
        loaded = time.process_time()
        result = symbol.optimize_for(backend, ops=OPS)
        spent.append((time.process_time() - loaded, loaded - start))
        subgraphs = result.graph.operators().get("_partition", 0)
        assert subgraphs == (count(size) or subgraphs)
        assert subgraphs > 0
    # Quadratic work would take sixteen times as long on four times the graph. Both times include
    # the bounded search for MXNet's own groups.
    assert spent[1][0] < 10 * spent[0][0], spent
    # 23 us a node where loading takes 0.56. Sanitizers slow a library down far more than the host.
    assert EXTRA_FLAGS or spent[1][0] < 40 * spent[1][1], spent
