"""Which nodes of two graphs stand for one another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from passlib.graph.node import Node

__all__ = ["Pairing", "pair_nodes"]


@dataclass(frozen=True)
class Pairing:
    """Nodes of the graph before, by those of the graph after that stand for them.

    Attributes
    ----------
    old : dict of Node to Node
    """

    old: dict[Node, Node]


def pair_nodes(before: Sequence[Node], after: Sequence[Node]) -> Pairing:
    """Pair nodes of one name in their order; and of the rest those that only have another name.

    A node has only another name if operator, attributes and nested graphs are the same, and its
    inputs are paired.

    Parameters
    ----------
    before, after : sequence of Node
        Each after its inputs.
    """
    by_name: dict[str, list[Node]] = defaultdict(list)
    for node in reversed(before):
        by_name[node.name].append(node)
    old = {node: by_name[node.name].pop() for node in after if by_name[node.name]}
    left: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for nodes in by_name.values():
        for node in nodes:
            if not node.is_variable:
                left[_form(node, {})].append(node)
    for node in after:
        if node not in old and not node.is_variable:
            same = left.get(_form(node, old))
            if same:
                old[node] = same.pop()
    return Pairing(old)


def _form(node: Node, old: dict[Node, Node]) -> tuple[object, ...]:
    """Return what makes a node the same as another one but for its name."""
    inputs = tuple((id(old.get(entry.node, entry.node)), entry.index) for entry in node.inputs)
    own = tuple(sorted((key, text) for key, text in node.attrs.items() if key[:2] != "__"))
    return node.op, own, inputs, node.num_outputs, len(node.subgraphs)
