"""Splits the changes of a pass into independent rewrites, which can be applied one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from passlib import dialects
from passlib.errors import GraphError, listed, printable, short_repr
from passlib.graph.node import Entry, Node
from passlib.graph.ordering import depth_first_order, stuck_items
from passlib.graph.plain import ORIGIN, RULES, freeze
from passlib.model import Model
from passlib.model.graph import graph_of
from passlib.pages.pairing import pair_nodes
from passlib.workbench.parts import of_symbol

Item = tuple[str, Node, int]
"""A kind ("gone", "new", "body", "slot", "weight"), a node, and the number of a slot.

Nodes are those of the graph after the pass, except those that are gone."""

HEAD = Node("", "")
"""Represents the graph; its slots are the outputs."""


@short_repr
@dataclass(frozen=True)
class Rewrite:
    """An independent change of a pass.

    Attributes
    ----------
    items : frozenset
        What the rewrite consists of, for the object that split it off.
    removed, added, changed : tuple of str
        ``name (operator)`` of nodes, and ``weight name``.
    lines : tuple of (tuple of str, tuple of str)
        The nodes before and after; empty if the graphs with and without the rewrite show them.
    place : str
        The nested graph that it is in, from the innermost one; empty for the main graph.
    """

    items: frozenset[Any]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    lines: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    place: str = ""

    def __str__(self) -> str:
        lines = [
            f"  {mark} {printable(text)}"
            for mark, texts in (("-", self.removed), ("+", self.added), ("~", self.changed))
            for text in texts
        ]
        if self.place:
            lines.append(printable(f"    in {self.place}"))
        return "\n".join(lines)


def _split(before: Model, after: Model, old: Mapping[Node, Node]) -> tuple[Rewrite, ...]:
    """Split the changes of a pass; ``old`` maps nodes after the pass to nodes before it."""
    first, second = before.symbol.nodes(), after.symbol.nodes()
    groups = _Groups()
    new_of = {node: made for made, node in old.items()}
    for node in first:
        if node not in new_of:
            groups.add(("gone", node, 0))
    changed_weights = _changed_weights(before, after)
    for node in second:
        if node not in old:
            groups.add(("new", node, 0))
        elif _body(node) != _body(old[node]) or len(node.inputs) != len(old[node].inputs):
            groups.add(("body", node, 0))
        if node in old and node.is_variable and node.name in changed_weights:
            groups.add(("weight", node, 0))
    for node, was, now in _slots(before, after, old):
        for slot in range(max(len(was), len(now))):
            one = was[slot] if slot < len(was) else None
            two = now[slot] if slot < len(now) else None
            if _same(one, two, old):
                continue
            item: Item = ("slot", node, slot)
            groups.add(item)
            if one is not None and one.node not in new_of:
                groups.join(item, ("gone", one.node, 0))
            if two is not None and two.node not in old:
                groups.join(item, ("new", two.node, 0))
            if len(was) != len(now):
                groups.join(item, ("body", node, 0))
            for other, entry in enumerate(was):
                if other != slot and two is not None and _same(entry, two, old):
                    groups.join(item, ("slot", node, other))
    _join_inner_edges(groups, first, second, old, new_of)
    _join_weights(groups, first, second, old, new_of)
    return tuple(map(_described, groups.sets()))


def _join_inner_edges(
    groups: _Groups,
    first: Iterable[Node],
    second: Iterable[Node],
    old: Mapping[Node, Node],
    new_of: Mapping[Node, Node],
) -> None:
    """Join removed nodes with their removed inputs, and new nodes with their new inputs."""
    for kind, nodes, known in (("gone", first, new_of), ("new", second, old)):
        for node in nodes:
            if node in known:
                continue
            for other in [*(entry.node for entry in node.inputs), *node.control_deps]:
                if other not in known:
                    groups.join((kind, node, 0), (kind, other, 0))


def _join_weights(
    groups: _Groups,
    first: Iterable[Node],
    second: Iterable[Node],
    old: Mapping[Node, Node],
    new_of: Mapping[Node, Node],
) -> None:
    """Join a changed weight with the changed readers of its values."""
    readers: dict[Node, list[tuple[Node, int]]] = defaultdict(list)
    for node in second:
        for slot, entry in enumerate(node.inputs):
            readers[entry.node].append((node, slot))
    gone_readers: dict[Node, list[Node]] = defaultdict(list)
    for node in first:
        for entry in node.inputs:
            if node not in new_of:
                gone_readers[entry.node].append(node)
    for weight in [node for kind, node, _ in groups.items() if kind == "weight"]:
        item: Item = ("weight", weight, 0)
        for reader, slot in readers[weight]:
            for kind, place in (("slot", slot), ("body", 0), ("new", 0)):
                if (kind, reader, place) in groups:
                    groups.join(item, (kind, reader, place))
            before = old.get(reader)
            for other in gone_readers[before] if before is not None else ():
                groups.join(item, ("gone", other, 0))
            for user, place in readers[reader]:
                for kind, number in (("slot", place), ("new", 0)):
                    if (kind, user, number) in groups:
                        groups.join(item, (kind, user, number))


def _slots(
    before: Model, after: Model, old: Mapping[Node, Node]
) -> Iterable[tuple[Node, tuple[Entry, ...], tuple[Entry, ...]]]:
    """Iterate over common nodes and the graph, with their inputs before and after."""
    for node in after.symbol.nodes():
        if node in old:
            yield node, old[node].inputs, node.inputs
    yield HEAD, before.symbol.entries, after.symbol.entries


def _same(one: Entry | None, two: Entry | None, old: Mapping[Node, Node]) -> bool:
    if one is None or two is None:
        return False
    return old.get(two.node) is one.node and one[1:] == two[1:]


def _body(node: Node) -> tuple[object, ...]:
    nested = [graph.graph.print(pretty=False, attributes={}) for graph in node.subgraphs]
    attributes = {key: text for key, text in node.attrs.items() if key not in (ORIGIN, RULES)}
    return node.op, node.name, attributes, node.num_outputs, nested


def _changed_weights(before: Model, after: Model) -> set[str]:
    found = set()
    for old, new in ((before.args, after.args), (before.aux, after.aux)):
        for name in old.keys() | new.keys():
            one, two = old.get(name), new.get(name)
            if one is two:
                continue
            if one is None or two is None or not _equal(one, two):
                found.add(name)
    return found


def _equal(one: Any, two: Any) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.shares_memory(one, two) or one.tobytes() == two.tobytes()
    return False


def _described(items: frozenset[Item]) -> Rewrite:
    removed = [_title(node) for kind, node, _ in items if kind == "gone"]
    added = [_title(node) for kind, node, _ in items if kind == "new"]
    changed = []
    for kind, node, slot in items:
        if kind == "weight":
            changed.append(f"weight {node.name}")
        elif kind == "body":
            changed.append(_title(node))
        elif kind == "slot":
            what = "output" if node is HEAD else f"{_title(node)}: input"
            changed.append(f"{what} {slot}")
    return Rewrite(items, tuple(sorted(removed)), tuple(sorted(added)), tuple(sorted(changed)))


_MOST_SHOWN: Final = 8
"""An If may capture hundreds of values."""


def drawn_node(outputs: str, operator: str, inputs: Sequence[str]) -> str:
    """Return a line ``outputs = operator(inputs)``."""
    shown = list(inputs[:_MOST_SHOWN])
    if len(inputs) > _MOST_SHOWN:
        shown.append(f"... {len(inputs) - _MOST_SHOWN} more")
    return printable(f"  {outputs} = {operator}({', '.join(shown)})")


def _title(node: Node) -> str:
    return f"{node.name} ({'variable' if node.is_variable else node.op})"


class _Groups:
    """Disjoint sets of items (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[Item, Item] = {}

    def __contains__(self, item: object) -> bool:
        return item in self._parent

    def add(self, item: Item) -> None:
        self._parent.setdefault(item, item)

    def items(self) -> list[Item]:
        return list(self._parent)

    def join(self, one: Item, two: Item) -> None:
        self.add(one)
        self.add(two)
        self._parent[self._root(one)] = self._root(two)

    def _root(self, item: Item) -> Item:
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def sets(self) -> list[frozenset[Item]]:
        found: dict[Item, list[Item]] = defaultdict(list)
        for item in self._parent:
            found[self._root(item)].append(item)
        return [frozenset(items) for items in found.values()]


class Rewriting:
    """The changes of a pass, which can be applied in parts."""

    def __init__(self, before: Model, after: Model) -> None:
        self._before, self._after = before, after
        self._old = pair_nodes(before.symbol, after.symbol)
        self._new_of = {node: made for made, node in self._old.items()}
        self.rewrites = _split(before, after, self._old)

    def sharing(self, rewrite: Rewrite) -> list[Rewrite]:
        """Return the other rewrites that change the same nodes."""
        nodes = {node for kind, node, _ in rewrite.items if kind in ("body", "slot")}
        return [
            other
            for other in self.rewrites
            if other is not rewrite
            and any(kind in ("body", "slot") and node in nodes for kind, node, _ in other.items)
        ]

    def join(self, rewrites: Sequence[Rewrite]) -> None:
        """Make one rewrite of several."""
        items = frozenset(item for rewrite in rewrites for item in rewrite.items)
        kept = tuple(each for each in self.rewrites if each not in rewrites)
        self.rewrites = (*kept, _described(items))

    def with_only(self, rewrites: Iterable[Rewrite]) -> Model:
        """Return the model before the pass with some of the rewrites.

        Raises
        ------
        GraphError
            These rewrites alone create a cycle or another invalid graph.
        """
        chosen: set[Item] = {item for rewrite in rewrites for item in rewrite.items}
        before, after = self._before, self._after
        nodes = self._nodes(chosen)
        inputs = {node: self._inputs(node, chosen) for node in nodes}
        heads = self._chosen_entries(HEAD, before.symbol.entries, after.symbol.entries, chosen)
        order = self._ordered(nodes, inputs)
        made: dict[Node, Node] = {}
        for node in order:
            own = node
            if node in self._old and ("body", node, 0) not in chosen:
                own = self._old[node]
            made[node] = Node(
                own.op,
                own.name,
                own.attrs,
                [entry._replace(node=made[entry.node]) for entry in inputs[node]],
                own.num_outputs,
                [made[dep] for dep in map(self._standing, own.control_deps) if dep in made],
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
        """Return the node after the pass for a node before it, or the node itself."""
        return self._new_of.get(node, node)

    def _nodes(self, chosen: set[Item]) -> list[Node]:
        """Return the nodes of the mixed graph; for common nodes, those after the pass."""
        kept = [
            self._standing(node)
            for node in self._before.symbol.nodes()
            if ("gone", node, 0) not in chosen
        ]
        added = [node for kind, node, _ in chosen if kind == "new"]
        places = {node: place for place, node in enumerate(self._after.symbol.nodes())}
        return kept + sorted(added, key=places.__getitem__)

    def _inputs(self, node: Node, chosen: set[Item]) -> list[Entry]:
        if node in self._old:
            return self._chosen_entries(node, self._old[node].inputs, node.inputs, chosen)
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
                raise GraphError(f"node {node.name!r} needs {listed(missing)}, which is removed")
            needs.append([number[other] for other in wanted])
        stuck = stuck_items(needs)
        if stuck:
            raise GraphError(f"a cycle through {listed([nodes[item].name for item in stuck])}")
        return [nodes[item] for item in depth_first_order(needs)]

    def _weights(self, chosen: set[Item]) -> tuple[dict[str, Any], dict[str, Any]]:
        names = {node.name for kind, node, _ in chosen if kind in ("weight", "new")}
        gone = {node.name for kind, node, _ in chosen if kind == "gone"} - names
        weights = (self._before.args, self._after.args), (self._before.aux, self._after.aux)
        found = []
        for old, new in weights:
            mixed = {name: array for name, array in old.items() if name not in gone}
            for name in names:
                mixed.pop(name, None)
                if name in new:
                    mixed[name] = new[name]
            found.append(mixed)
        return found[0], found[1]
