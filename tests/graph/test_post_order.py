"""Nodes of graphs in MXNet's order: depth first from the outputs, whatever the order they had."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from passlib import _core

Edge = tuple[int, int, int]
Inputs = list[list[int]]
"""The producers of each node."""


def _post_order(inputs: Inputs, heads: list[int]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()

    def visit(node: int) -> None:
        if node in seen:
            return
        seen.add(node)
        for producer in inputs[node]:
            visit(producer)
        order.append(node)

    for head in heads:
        visit(head)
    return order


def _random(seed: int) -> tuple[Inputs, list[int]]:
    """Return a graph whose nodes come after their producers, mostly not in post-order."""
    rng = random.Random(seed)
    count = rng.randint(1, 12)
    inputs = [[rng.randrange(i) for _ in range(rng.randint(0, min(i, 3)))] for i in range(count)]
    heads = [count - 1] if rng.random() < 0.5 else [rng.randrange(count) for _ in range(3)]
    if rng.random() < 0.5:
        order = _post_order(inputs, heads)
        place = {node: i for i, node in enumerate(order)}
        inputs = [[place[producer] for producer in inputs[node]] for node in order]
        heads = [place[head] for head in heads]
    return inputs, heads


def _name(node: int) -> str:
    return f"n{node}"


def _text(
    inputs: Inputs, heads: list[int], nested: Any = None, deps: tuple[int, int] | None = None
) -> str:
    nodes = []
    for i, producers in enumerate(inputs):
        node: dict[str, Any] = {"op": "Op", "name": _name(i)}
        node["inputs"] = [[producer, 0, 0] for producer in producers]
        if deps is not None and i == deps[0]:
            node["control_deps"] = [deps[1]]
        if nested is not None and i == len(inputs) - 1:
            node["subgraphs"] = [json.loads(nested)]
        nodes.append(node)
    graph = {"nodes": nodes, "arg_nodes": [], "heads": [[head, 0, 0] for head in heads]}
    return json.dumps(graph)


def _names(graph: _core.Graph) -> list[str]:
    nodes = json.loads(graph.print(pretty=False, attributes={}))["nodes"]
    return [node["name"] for node in nodes]


@pytest.mark.parametrize("seed", range(300))
def test_a_file_is_put_in_order(seed: int) -> None:
    inputs, heads = _random(seed)
    graph = _core.Graph.parse(_text(inputs, heads), lenient=False, ordered=True)
    assert _names(graph) == [_name(node) for node in _post_order(inputs, heads)]


@pytest.mark.parametrize("seed", range(300))
def test_what_a_pass_leaves_is_put_in_order(seed: int) -> None:
    inputs, heads = _random(seed)
    before = _core.Graph.parse(_text(inputs, heads), lenient=False, ordered=False)
    editable = _core.EditableRoot(before, "a pass", types_known=False, consume=False)
    graph, gone = editable.finish(ordered=True)
    assert gone == []
    assert _names(graph) == [_name(node) for node in _post_order(inputs, heads)]


def test_a_nested_graph_alone_is_out_of_order() -> None:
    nested = _text([[], [], [1, 0]], [2])
    text = _text([[], [0]], [1], nested)
    graph = _core.Graph.parse(text, lenient=False, ordered=True)
    assert _names(graph) == ["n0", "n1"]
    inner = json.loads(graph.print(pretty=False, attributes={}))["nodes"][1]["subgraphs"][0]
    assert [node["name"] for node in inner["nodes"]] == ["n1", "n0", "n2"]


def test_control_dependencies_count() -> None:
    # Without the dependency the nodes would stand in post-order.
    text = _text([[], [], [0]], [2, 1], deps=(2, 1))
    graph = _core.Graph.parse(text, lenient=False, ordered=True)
    assert _names(graph) == ["n0", "n1", "n2"]
    unneeded = _text([[], [], [1]], [2], deps=(2, 0))
    graph = _core.Graph.parse(unneeded, lenient=False, ordered=True)
    assert _names(graph) == ["n1", "n0", "n2"]


def test_a_long_chain() -> None:
    count = 100_000
    inputs = [[i - 1] if i else [] for i in range(count)]
    graph = _core.Graph.parse(_text(inputs, [count - 1]), lenient=False, ordered=True)
    assert _names(graph) == [_name(node) for node in range(count)]
