"""Comparison of graphs: any difference counts, wherever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from passlib import _core

Nodes = list[list[Any]]
Heads = list[tuple[int, int, int]]


def _body(name: str = "inner") -> _core.Graph:
    nodes = [("null", "x", {}, [], 1, [], []), ("Relu", name, {}, [(0, 0, 0)], 1, [], [])]
    return _core.Graph.build(nodes, [(1, 0, 0)])


def _parts() -> tuple[Nodes, Heads]:
    nodes: Nodes = [
        ["null", "a", {"__id__": "input.0"}, [], 1, [], []],
        ["null", "b", {}, [], 1, [], []],
        ["Split", "split", {"axis": "1"}, [(0, 0, 0)], 2, [], []],
        ["Add", "add", {}, [(2, 0, 0), (1, 0, 0)], 1, [0], []],
        ["Loop", "loop", {}, [(3, 0, 0)], 1, [], [_body()]],
    ]
    return nodes, [(4, 0, 0)]


def _built(nodes: Nodes, heads: Heads) -> _core.Graph:
    return _core.Graph.build([tuple(node) for node in nodes], heads)


def _set(position: int, field: int, value: Any) -> Callable[[Nodes, Heads], None]:
    def change(nodes: Nodes, heads: Heads) -> None:
        nodes[position][field] = value

    return change


def _swap(nodes: Nodes, heads: Heads) -> None:
    nodes[0], nodes[1] = nodes[1], nodes[0]
    nodes[2][3] = [(1, 0, 0)]
    nodes[3][3] = [(2, 0, 0), (0, 0, 0)]
    nodes[3][5] = [1]


def _add(nodes: Nodes, heads: Heads) -> None:
    nodes.append(["null", "c", {}, [], 1, [], []])


CHANGES: dict[str, Callable[[Nodes, Heads], None]] = {
    "operator": _set(3, 0, "Sub"),
    "name": _set(3, 1, "sum"),
    "attribute value": _set(2, 2, {"axis": "0"}),
    "attribute key": _set(2, 2, {"axes": "1"}),
    "attribute gone": _set(0, 2, {}),
    "producer": _set(3, 3, [(2, 0, 0), (0, 0, 0)]),
    "output of the producer": _set(3, 3, [(2, 1, 0), (1, 0, 0)]),
    "version": _set(3, 3, [(2, 0, 0), (1, 0, 1)]),
    "input gone": _set(3, 3, [(2, 0, 0)]),
    "number of outputs": _set(2, 4, 3),
    "control dependency": _set(3, 5, [1]),
    "control dependency gone": _set(3, 5, []),
    "nested graph": _set(4, 6, [_body("other")]),
    "nested graph gone": _set(4, 6, []),
    "order": _swap,
    "new node": _add,
    "output": lambda nodes, heads: heads.__setitem__(0, (3, 0, 0)),
    "output more": lambda nodes, heads: heads.append((3, 0, 0)),
}


def test_a_copy_is_equal() -> None:
    graph = _built(*_parts())
    assert graph.equals(graph.copy())
    assert graph.equals(_built(*_parts()))


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen(what: str) -> None:
    graph = _built(*_parts())
    nodes, heads = _parts()
    CHANGES[what](nodes, heads)
    other = _built(nodes, heads)
    assert not graph.equals(other)
    assert not other.equals(graph)
