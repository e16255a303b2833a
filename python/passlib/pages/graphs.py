"""Graphs, alone or two laid over one another, as the page draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passlib.dialects import infer
from passlib.errors import PasslibError
from passlib.graph.node import Entry, Node
from passlib.graph.ordering import depth_first_order, stuck_items
from passlib.graph.plain import PlainGraph
from passlib.lowering import TypeSpec
from passlib.lowering.types import shape_text
from passlib.pages.changes import node_changes, weight_changes
from passlib.pages.pairing import origin_of, pair_nodes
from passlib.pages.statistics import weight_facts

_LONGEST = 400
"""Characters of an attribute that are shown."""


@dataclass(frozen=True)
class Side:
    """A graph with its weights.

    Attributes
    ----------
    graph : PlainGraph
    weights : mapping of str to array
    """

    graph: PlainGraph
    weights: Mapping[str, Any] = field(default_factory=dict)


def graphs_of(after: Side, before: Side | None = None) -> list[dict[str, Any]]:
    """Return a graph and those nested in it, each over the one that it was before.

    Parameters
    ----------
    after : Side
    before : Side, optional
        Without it nothing is removed, added or changed.

    Returns
    -------
    list of dict
        The whole graph first. Each has a ``name``, ``outputs`` (positions of nodes) and ``nodes``,
        after their inputs. A node has ``name``, ``op`` and ``status``: ``"="``, ``"-"``, ``"+"`` or
        ``"~"``; and what it has of ``inputs`` and ``old`` ones ([node, output]), ``attrs``,
        ``types``, ``changes``, ``weight``, ``old_weight``, ``origin``, and ``graphs``, positions
        in the list.
    """
    found: list[dict[str, Any]] = []
    pending: list[tuple[str, Side, Side | None]] = [("the whole graph", after, before)]
    while pending:
        name, new, old = pending.pop(0)
        laid = _Overlay(new, old)
        found.append(laid.drawn(name))
        for position, label, one, two in laid.nested:
            described = found[-1]["nodes"][position].setdefault("graphs", [])
            described.append(len(found) + len(pending))
            pending.append((f"{name} / {label}", one, two))
    return found


class _Overlay:
    """Two graphs of which equal nodes are drawn once."""

    def __init__(self, after: Side, before: Side | None) -> None:
        self._after, self._before = after, before
        new = after.graph.nodes()
        old = before.graph.nodes() if before is not None else []
        self._old = pair_nodes(before.graph, after.graph).old if before is not None else {}
        kept = {id(node): node for node in self._old.values()}
        self._gone = {id(node) for node in old if id(node) not in kept}
        self._new_of = {id(made): node for node, made in self._old.items()}
        nodes = [*new, *(node for node in old if id(node) in self._gone)]
        self._order = _ordered(nodes, self._needs(nodes))
        self._place = {id(node): place for place, node in enumerate(self._order)}
        self._types = _types(after.graph)
        self._old_types = _types(before.graph) if before is not None else {}
        self._weights = weight_changes(before.weights, after.weights) if before is not None else {}
        self.nested: list[tuple[int, str, Side, Side | None]] = []

    def _stands(self, node: Node) -> Node:
        return self._new_of.get(id(node), node)

    def _needs(self, nodes: Sequence[Node]) -> tuple[list[list[int]], list[list[int]]]:
        """Return what each node needs after, and what it needed before."""
        place = {id(node): i for i, node in enumerate(nodes)}
        now = [[place[id(self._stands(e.node))] for e in node.inputs] for node in nodes]
        was = [
            [place[id(self._stands(e.node))] for e in self._old[node].inputs]
            if node in self._old
            else []
            for node in nodes
        ]
        return now, was

    def drawn(self, name: str) -> dict[str, Any]:
        nodes = [self._node(place, node) for place, node in enumerate(self._order)]
        sides = [self._after.graph, *([self._before.graph] if self._before else [])]
        outputs = {self._place[id(self._stands(e.node))] for g in sides for e in g.entries}
        return {"name": name, "outputs": sorted(outputs), "nodes": nodes}

    def _node(self, place: int, node: Node) -> dict[str, Any]:
        was = self._old.get(node)
        gone = id(node) in self._gone
        made: dict[str, Any] = {"name": node.name, "op": "" if node.is_variable else node.op}
        changes: list[str] = []
        if was is not None:
            changes = node_changes(was, node, self._old)
            if node.is_variable and node.name in self._weights:
                changes.append(f"weight: {self._weights[node.name]}")
        added = self._before is not None and was is None
        made["status"] = "-" if gone else "+" if added else "~" if changes else "="
        optional = {
            "changes": changes,
            "inputs": self._entries(node.inputs),
            "attrs": _attributes(node),
            "types": _texts((self._old_types if gone else self._types).get(node, ())),
            "origin": origin_of(node),
        }
        if was is not None and changes:
            optional["old"] = self._entries(was.inputs)
        if node.is_variable:
            optional["weight"] = _weight(self._before if gone else self._after, node)
            if any(text.startswith("weight") for text in changes):
                optional["old_weight"] = _weight(self._before, node)
        made |= {key: value for key, value in optional.items() if value}
        for i, graph in enumerate(node.subgraphs):
            pair = was.subgraphs if was is not None else ()
            other = Side(pair[i]) if len(pair) == len(node.subgraphs) else None
            self.nested.append((place, f"{node.name} {i}", Side(graph), other))
        return made

    def _entries(self, entries: Sequence[Entry]) -> list[list[int]]:
        return [[self._place[id(self._stands(e.node))], e.index] for e in entries]


def _ordered(nodes: Sequence[Node], needs: tuple[list[list[int]], list[list[int]]]) -> list[Node]:
    """Order the nodes of both graphs; those before count unless the two make a cycle."""
    now, was = needs
    both = [[*one, *two] for one, two in zip(now, was, strict=True)]
    order = depth_first_order(now if stuck_items(both) else both)
    return [nodes[place] for place in order]


def _types(graph: PlainGraph) -> Mapping[Node, Sequence[TypeSpec]]:
    try:
        return infer(graph, {}).outputs
    except PasslibError:  # contradictory shapes, operators of other packages, no package onnx
        return {}


def _texts(specs: Sequence[TypeSpec]) -> list[str]:
    texts = []
    for spec in specs:
        dtype = "" if spec.dtype is None else "str" if spec.dtype.kind in "OU" else spec.dtype.name
        texts.append(f"{dtype} {'' if spec.shape is None else shape_text(spec.shape)}".strip())
    return texts if any(texts) else []


def _attributes(node: Node) -> dict[str, str]:
    return {
        key: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
        for key, text in node.attrs.items()
        if not key.startswith("__")
    }


def _weight(side: Side | None, node: Node) -> dict[str, Any] | None:
    array = None if side is None else side.weights.get(node.name)
    return None if array is None else weight_facts(array)
