"""Models with some of a pass's rewrites."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from passlib import dialects
from passlib.errors import GraphError, listed
from passlib.graph.native import freeze
from passlib.graph.node import Entry, Node
from passlib.graph.ordering import depth_first_order, stuck_items
from passlib.model import Model
from passlib.model.graph import graph_of
from passlib.workbench.parts import of_symbol
from passlib.workbench.rewrites.splitting import HEAD, Item, Rewrite, rewrites_between


class Rewriting:
    """What a pass did, to be applied in parts.

    Parameters
    ----------
    before, after : Model
        ``after`` is what a pass made of ``before``.

    Attributes
    ----------
    rewrites : tuple of Rewrite
    """

    def __init__(self, before: Model, after: Model) -> None:
        self._delta = rewrites_between(before, after)
        self.rewrites = self._delta.rewrites
        self._new_of = {node: made for made, node in self._delta.old.items()}

    def with_only(self, rewrites: Iterable[Rewrite]) -> Model:
        """Return the model before the pass with some of the rewrites.

        Raises
        ------
        GraphError
            These rewrites alone make a graph with a cycle, or one that is not sound otherwise.
        """
        chosen: set[Item] = {item for rewrite in rewrites for item in rewrite.items}
        before, after = self._delta.before, self._delta.after
        nodes = self._nodes(chosen)
        inputs = {node: self._inputs(node, chosen) for node in nodes}
        heads = self._chosen_entries(HEAD, before.symbol.entries, after.symbol.entries, chosen)
        order = self._ordered(nodes, inputs)
        made: dict[Node, Node] = {}
        for node in order:
            own = node
            if node in self._delta.old and ("body", node, 0) not in chosen:
                own = self._delta.old[node]
            made[node] = Node(
                own.op,
                own.name,
                own.attrs,
                [entry._replace(node=made[entry.node]) for entry in inputs[node]],
                own.num_outputs,
                [
                    made[self._standing(dep)]
                    for dep in own.control_deps
                    if self._standing(dep) in made
                ],
                own.subgraphs,
            )
        entries = [entry._replace(node=made[entry.node]) for entry in heads]
        family = dialects.find(before.dialect)
        every = None if family.ordered else [made[node] for node in order]
        graph = freeze(entries, lambda nested: nested.graph, every)
        family.complete(graph)
        own_attributes = family.own_after(before.symbol, graph)
        attributes = {**before.symbol.attributes, **own_attributes}
        symbol = graph_of(graph, attributes, before.dialect)
        return of_symbol(before, symbol, *self._weights(chosen))

    def _standing(self, node: Node) -> Node:
        """Return the node that stands for a node of the graph before, or the node itself."""
        return self._new_of.get(node, node)

    def _nodes(self, chosen: set[Item]) -> list[Node]:
        """Return the nodes of the mixed graph: those after for nodes that both have."""
        kept = [
            self._standing(node)
            for node in self._delta.before.symbol.nodes()
            if ("gone", node, 0) not in chosen
        ]
        added = [node for kind, node, _ in chosen if kind == "new"]
        places = {node: place for place, node in enumerate(self._delta.after.symbol.nodes())}
        return kept + sorted(added, key=places.__getitem__)

    def _inputs(self, node: Node, chosen: set[Item]) -> list[Entry]:
        if node in self._delta.old:
            return self._chosen_entries(node, self._delta.old[node].inputs, node.inputs, chosen)
        return [entry._replace(node=self._standing(entry.node)) for entry in node.inputs]

    def _chosen_entries(
        self, node: Node, was: tuple[Entry, ...], now: tuple[Entry, ...], chosen: set[Item]
    ) -> list[Entry]:
        old = [entry._replace(node=self._standing(entry.node)) for entry in was]
        if len(was) != len(now):
            applied = any(kind == "slot" and other is node for kind, other, _ in chosen)
            return list(now) if applied or ("body", node, 0) in chosen else old
        return [
            now[slot] if ("slot", node, slot) in chosen else old[slot] for slot in range(len(old))
        ]

    def _ordered(self, nodes: list[Node], inputs: dict[Node, list[Entry]]) -> list[Node]:
        number = {node: place for place, node in enumerate(nodes)}
        needs = []
        for node in nodes:
            wanted = [entry.node for entry in inputs[node]]
            wanted += [self._standing(dep) for dep in node.control_deps]
            missing = [other.name for other in wanted if other not in number]
            if missing:
                raise GraphError(f"node {node.name!r} needs {listed(missing)}, which is gone")
            needs.append([number[other] for other in wanted])
        stuck = stuck_items(needs)
        if stuck:
            raise GraphError(f"a cycle through {listed([nodes[item].name for item in stuck])}")
        return [nodes[item] for item in depth_first_order(needs)]

    def _weights(self, chosen: set[Item]) -> tuple[dict[str, Any], dict[str, Any]]:
        names = {node.name for kind, node, _ in chosen if kind in ("weight", "new")}
        gone = {node.name for kind, node, _ in chosen if kind == "gone"} - names
        before, after = self._delta.before, self._delta.after
        found = []
        for old, new in ((before.args, after.args), (before.aux, after.aux)):
            mixed = {name: array for name, array in old.items() if name not in gone}
            for name in names:
                mixed.pop(name, None)
                if name in new:
                    mixed[name] = new[name]
            found.append(mixed)
        return found[0], found[1]
