"""Graphs as pages draw them: one, or two laid over each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from passlib.dialects import infer
from passlib.errors import PasslibError
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.graph.ordering import depth_first_order, stuck_items
from passlib.graph.plain import PlainGraph
from passlib.lowering import TypeSpec
from passlib.lowering.types import shape_text
from passlib.pages.pairing import node_changes, origin_of, pair_nodes, weight_changes
from passlib.pages.statistics import weight_facts

_LONGEST = 400
"""Maximum number of displayed characters of an attribute."""


@dataclass(frozen=True)
class Side:
    """A graph, its weights, and what is to be said of its nodes.

    Attributes
    ----------
    notes : mapping of str to str
        Changes, by the names of nodes.
    lines : mapping of str to str
        Drawn on nodes, by their names.
    nested : mapping of (str, int) to Side
        Nested graphs of which something is to be said, by the name of the node and their number.
    """

    graph: PlainGraph
    weights: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    nested: Mapping[tuple[str, int], Side] = field(default_factory=dict)


def graphs_of(after: Side, before: Side | None = None) -> list[dict[str, Any]]:
    """Return a graph and its nested graphs, each as an overlay over the graph before it.

    Parameters
    ----------
    before : Side, optional
        Without it, no node is removed, added or changed.

    Returns
    -------
    list of dict
        The main graph first. Each has a ``name``, ``outputs`` (indices of nodes) and ``nodes`` in
        topological order. A node has ``name``, ``op``, ``status`` (``"="``, ``"-"``, ``"+"`` or
        ``"~"``) and optionally ``inputs`` and ``old`` inputs ([node, output]), ``attrs``,
        ``types``, ``changes``, ``weight``, ``old_weight``, ``origin``, ``line``, which is drawn,
        and ``graphs``, indices in the list.
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
    """Two graphs whose equal nodes are drawn once."""

    def __init__(self, after: Side, before: Side | None) -> None:
        self._after, self._before = after, before
        new = after.graph.nodes()
        old = before.graph.nodes() if before is not None else []
        self._old = pair_nodes(before.graph, after.graph) if before is not None else {}
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
        """Return the inputs of each node after, and before."""
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
        if not gone and node.name in self._after.notes:
            changes.append(self._after.notes[node.name])
        added = self._before is not None and was is None
        made["status"] = "-" if gone else "+" if added else "~" if changes else "="
        optional = {
            "changes": changes,
            "inputs": self._entries(node.inputs),
            "attrs": _attributes(node),
            "types": _texts((self._old_types if gone else self._types).get(node, ())),
            "origin": origin_of(node),
            "line": "" if gone else self._after.lines.get(node.name, ""),
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
            own = self._after.nested.get((node.name, i), Side(graph))
            self.nested.append((place, f"{node.name} {i}", own, other))
        return made

    def _entries(self, entries: Sequence[Entry]) -> list[list[int]]:
        return [[self._place[id(self._stands(e.node))], e.index] for e in entries]


def _ordered(nodes: Sequence[Node], needs: tuple[list[list[int]], list[list[int]]]) -> list[Node]:
    """Return the nodes of both graphs in order; ignore the graph before if both make a cycle."""
    now, was = needs
    both = [[*one, *two] for one, two in zip(now, was, strict=True)]
    order = depth_first_order(now if stuck_items(both) else both)
    return [nodes[place] for place in order]


def _types(graph: PlainGraph) -> Mapping[Node, Sequence[TypeSpec]]:
    try:
        return infer(graph, {}).outputs
    except PasslibError:  # inconsistent shapes, unknown operators, no package onnx
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


MOST_IN_NOTEBOOKS: Final = 3000
"""Notebooks draw graphs of at most this many nodes, to open quickly."""


def content_of(
    after: Side,
    before: Side | None = None,
    facts: Sequence[tuple[str, str]] = (),
    tables: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the content of a page, see `document`.

    Parameters
    ----------
    before : Side, optional
        The graph to compare with.
    facts : sequence of (str, str)
        Listed first.
    tables : sequence of dict
        Each with ``title``, ``columns`` and ``rows``; a table of operators follows.
    """
    return {
        "graphs": graphs_of(after, before),
        "compares": before is not None,
        "noted": bool(after.notes),
        "facts": [list(pair) for pair in facts],
        "tables": [*tables, _operators(after, before)],
    }


def _operators(after: Side, before: Side | None) -> dict[str, Any]:
    counts = [Counter(side.graph.graph.operators()) for side in (before, after) if side is not None]
    names = sorted({name for count in counts for name in count} - {VARIABLE})
    rows: list[list[Any]] = [[name, *(count[name] for count in counts)] for name in names]
    rows.sort(key=lambda row: -row[-1])
    total = ["total", *(sum(count[name] for name in names) for count in counts)]
    columns = ["operator", "before", "after"] if before is not None else ["operator", "count"]
    return {"title": "Operators", "columns": columns, "rows": [*rows, total]}
