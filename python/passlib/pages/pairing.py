"""Which nodes of two graphs stand for one another."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from passlib.dialects.onnx.attributes import DOCUMENT, ID, OUTER
from passlib.errors import PasslibError
from passlib.graph.node import Entry, Node
from passlib.graph.plain import PlainGraph

Key = Callable[[Node], Hashable]


@dataclass(frozen=True)
class Pairing:
    """Nodes of the graph before, by those of the graph after that stand for them.

    Attributes
    ----------
    old : dict of Node to Node
    """

    old: dict[Node, Node]


def has_name(node: Node) -> bool:
    """Whether a node has a name of its own, and not one of its operator and place in a file."""
    return node.name != f"{node.op}_{node.attrs.get(ID)}"


def origin_of(node: Node) -> list[str]:
    """Return the names of the nodes that a rule made a node of, the last one that of its value."""
    text = node.attrs.get("__origin__")
    return [str(name) for name in json.loads(text)] if text else []


def pair_nodes(before: PlainGraph, after: PlainGraph) -> Pairing:
    """Pair nodes of one name in their order; and of the rest those that only have another name.

    Nodes of two ONNX files that have no name are paired by operator and the names of their values.
    A node has only another name if operator, attributes and nested graphs are the same, and its
    inputs are paired.

    Parameters
    ----------
    before, after : PlainGraph
    """
    first, second = before.nodes(), after.nodes()
    old: dict[Node, Node] = {}
    left: dict[Node, None] = dict.fromkeys(first)

    def pair(key: Key, wanted: Key | None = None) -> None:
        """Pair nodes of equal keys; a node that is its own key has no counterpart."""
        known: dict[Hashable, list[Node]] = defaultdict(list)
        for node in reversed(left):
            known[key(node)].append(node)
        for node in second:
            found = None if node in old else known.get((wanted or key)(node))
            if found:
                old[node] = found.pop()
                del left[old[node]]

    def pair_forms() -> None:
        pair(
            lambda node: node if node.is_variable else _form(node, {}),
            lambda node: node if node.is_variable else _form(node, old),
        )

    files = [graph.attributes.get(DOCUMENT) for graph in (before, after)]
    # Two files may have the same bytes: the document is one only if it is the same object.
    if files[0] is files[1] is not None:
        pair(lambda node: node.name)
        pair_forms()
        return Pairing(old)
    pair(lambda node: node.name if has_name(node) else node)
    values = {**_values(before), **_values(after)}
    pair(lambda node: (node.op, values[node]) if node in values else node)
    # A variable of a nested graph stands for an input of the node that has it.
    pair(lambda node: (OUTER, node.attrs[OUTER]) if OUTER in node.attrs else node)
    pair_forms()
    if files == [None, None]:  # such as nested graphs, of one file perhaps
        pair(lambda node: node.name)
    return Pairing(old)


def _values(graph: PlainGraph) -> dict[Node, str]:
    """Return the name of the first value of each node, as far as values have names."""
    nodes = [node for node in graph.nodes() if not node.is_variable and node.num_outputs]
    if DOCUMENT not in graph.attributes:
        return {}
    try:
        names = graph.with_entries([Entry(node) for node in nodes]).list_outputs()
    except PasslibError:
        return {}
    return dict(zip(nodes, names, strict=True))


def _form(node: Node, old: dict[Node, Node]) -> tuple[object, ...]:
    """Return what makes a node the same as another one but for its name."""
    inputs = tuple((id(old.get(entry.node, entry.node)), entry.index) for entry in node.inputs)
    own = tuple(sorted((key, text) for key, text in node.attrs.items() if key[:2] != "__"))
    return node.op, own, inputs, node.num_outputs, len(node.subgraphs)
