"""The nodes of a native graph as named tuples."""

from __future__ import annotations

import pickle

from passlib import _core

PLAIN = [
    ("null", "x", {}, [], 1, [], []),
    ("exp", "e", {"__lr__": "1"}, [(0, 0, 0)], 1, [0], []),
]


def test_nodes_are_tuples_with_names() -> None:
    nodes = _core.Graph.build(PLAIN, [(1, 0, 0)]).nodes()
    assert nodes == PLAIN
    assert all(type(node) is _core.NodeTuple for node in nodes)
    last = nodes[-1]
    assert (last.op, last.name, last.attrs) == ("exp", "e", {"__lr__": "1"})
    assert (last.inputs, last.num_outputs) == ([(0, 0, 0)], 1)
    assert (last.control_deps, last.subgraphs) == ([0], [])


def test_graphs_are_built_from_named_tuples_too() -> None:
    graph = _core.Graph.build(PLAIN, [(1, 0, 0)])
    again = _core.Graph.build(graph.nodes(), graph.heads())
    assert graph.equals(again)
    renamed = [node._replace(name=node.name + "2") for node in graph.nodes()]
    changed = _core.Graph.build(renamed, graph.heads())
    assert [node.name for node in changed.nodes()] == ["x2", "e2"]


def test_subgraphs_are_graphs() -> None:
    inner = _core.Graph.build(PLAIN, [(1, 0, 0)])
    outer = _core.Graph.build([("_op", "o", {}, [], 1, [], [inner])], [(0, 0, 0)])
    assert outer.nodes()[0].subgraphs[0].equals(inner)


def test_named_tuples_can_be_pickled() -> None:
    node = _core.NodeTuple("exp", "e", {}, [], 1, [], [])
    assert pickle.loads(pickle.dumps(node)) == node
