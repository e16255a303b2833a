"""Conversion between native graphs and nodes that Python can share and walk."""

from __future__ import annotations

import copyreg
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import passlib._core as _core
from passlib.files.regular import collection_off
from passlib.graph.node import VARIABLE, Entry, Node, postorder

WITH_GRAPHS = {"If", "Loop", "Scan", "SequenceMap"}
"""The operators of ONNX that have nested graphs."""

ORIGIN = "__origin__"
"""On nodes that patterns made: names of the nodes that they replaced, as a JSON list."""


def thaw(
    graph: _core.Graph, nest: Callable[[_core.Graph], Any]
) -> tuple[tuple[Node, ...], tuple[Entry, ...]]:
    """Make the nodes of a native graph, in its order, and its outputs.

    Parameters
    ----------
    graph : _core.Graph
        Each node comes after its inputs.
    nest : callable
        Converts a nested graph to the object that ``Node.subgraphs`` holds.
    """
    nodes: list[Node] = []
    for op, name, attrs, inputs, num_outputs, deps, subgraphs in graph.nodes():
        nodes.append(
            Node(
                op,
                name,
                attrs,
                [Entry(nodes[i], index, version) for i, index, version in inputs],
                num_outputs,
                [nodes[i] for i in deps],
                [nest(subgraph) for subgraph in subgraphs],
            )
        )
    heads = tuple(Entry(nodes[i], index, version) for i, index, version in graph.heads())
    return tuple(nodes), heads


def freeze(
    entries: Sequence[Entry],
    unnest: Callable[[Any], _core.Graph],
    nodes: Sequence[Node] | None = None,
) -> _core.Graph:
    """Make the native graph of these outputs.

    Parameters
    ----------
    entries : sequence of Entry
    unnest : callable
        The reverse of ``nest`` in `thaw`.
    nodes : sequence of Node, optional
        All nodes, each after its inputs; by default those that the outputs need, in post-order.

    Raises
    ------
    GraphError
        Two variables have one name, or an output is used that its node does not have.
    """
    if nodes is None:
        nodes = postorder(entry.node for entry in entries)
    number = {id(node): i for i, node in enumerate(nodes)}
    described = [
        (
            node.op,
            node.name,
            dict(node.attrs),
            [(number[id(e.node)], e.index, e.version) for e in node.inputs],
            node.num_outputs,
            [number[id(dep)] for dep in node.control_deps],
            [unnest(subgraph) for subgraph in node.subgraphs],
        )
        for node in nodes
    ]
    heads = [(number[id(e.node)], e.index, e.version) for e in entries]
    graph = _core.Graph.build(described, heads)
    graph.check()
    return graph


def rebuild(content: bytes) -> _core.Graph:
    """Return the graph that was pickled as these bytes."""
    with collection_off():
        return _core.Graph.build(*pickle.loads(content))


def _reduce(graph: _core.Graph) -> tuple[Any, ...]:
    # The collector would traverse the many tuples repeatedly while they are made.
    with collection_off():
        content = [tuple(node) for node in graph.nodes()], graph.heads()
        return rebuild, (pickle.dumps(content, pickle.HIGHEST_PROTOCOL),)


copyreg.pickle(_core.Graph, _reduce)


def without_origins(graph: _core.Graph) -> _core.Graph:
    """Return a graph for a file: the same one, or a copy whose nodes have no ``__origin__``."""
    if not graph.has_node_attribute(ORIGIN):
        return graph
    copy = graph.copy()
    copy.drop_node_attributes([ORIGIN])
    return copy


def operators_of(graph: _core.Graph) -> Counter[str]:
    """Count the operators of a graph by name, those of nested graphs included."""
    found: Counter[str] = Counter()
    pending = [graph]
    while pending:
        each = pending.pop()
        found.update(each.operators())
        for *_, nested in each.nodes_with(WITH_GRAPHS):
            pending += nested
    del found[VARIABLE]
    return found
