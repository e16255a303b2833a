"""Graphs as pages draw them: one, or two laid over each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from passlib import dialects
from passlib.dialects import ModelData, infer
from passlib.dialects.onnx.attributes import ABSENT
from passlib.dialects.protocol import Described, with_names
from passlib.errors import PasslibError
from passlib.graph.node import Entry, Node
from passlib.graph.ordering import depth_first_order, stuck_items
from passlib.graph.plain import PlainGraph, operators_of
from passlib.lowering import TypeSpec
from passlib.lowering.types import shape_text
from passlib.pages.pairing import (
    Change,
    node_changes,
    origin_of,
    pair_nodes,
    rules_of,
    weight_changes,
)
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


Steps = Sequence[tuple[str, Sequence[str]]]
"""The passes that ran, each with the names of the nodes of the main graph that it changed."""


def graphs_of(after: Side, before: Side | None = None, steps: Steps = ()) -> list[dict[str, Any]]:
    """Return a graph and its nested graphs, each as an overlay over the graph before it.

    Parameters
    ----------
    before : Side, optional
        Without it, no node is removed, added or changed.
    steps : sequence of (str, sequence of str)
        What ran between the two.

    Returns
    -------
    list of dict
        The main graph first. Each has a ``name``, ``outputs`` (indices of nodes) and ``nodes`` in
        topological order. A node has ``name``, ``op``, ``status`` (``"="``, ``"-"``, ``"+"`` or
        ``"~"``) and optionally ``inputs`` and ``old`` inputs ([node, output]), ``attrs``,
        ``types`` and ``old_types`` if these differ, ``changes`` (what, or what, was and now),
        ``cause``, the rule or pass that changed it, ``weight``, ``old_weight``, ``origin``,
        ``line``, which is drawn, and ``graphs``, indices in the list.
    """
    found: list[dict[str, Any]] = []
    pending: list[tuple[str, Side, Side | None]] = [("the whole graph", after, before)]
    while pending:
        name, new, old = pending.pop(0)
        laid = _Overlay(new, old, () if found else steps)
        found.append(laid.drawn(name))
        for position, label, one, two in laid.nested:
            described = found[-1]["nodes"][position].setdefault("graphs", [])
            described.append(len(found) + len(pending))
            pending.append((f"{name} / {label}", one, two))
    return found


class _Overlay:
    """Two graphs whose equal nodes are drawn once."""

    def __init__(self, after: Side, before: Side | None, steps: Steps) -> None:
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
        self._types = _types(after)
        self._old_types = _types(before) if before is not None else {}
        self._weights = weight_changes(before.weights, after.weights) if before is not None else {}
        self._causes = _Causes(new, steps)
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
        # Omitted inputs are not drawn.
        name = "" if node.is_variable and node.name == ABSENT else node.name
        made: dict[str, Any] = {"name": name, "op": "" if node.is_variable else node.op}
        changes: list[Change] = []
        if was is not None:
            changes = node_changes(was, node, self._old)
            if node.is_variable and node.name in self._weights:
                changes.append(Change.of("weight: ", self._weights[node.name]))
        if not gone and node.name in self._after.notes:
            changes.append(Change(self._after.notes[node.name]))
        added = self._before is not None and was is None
        made["status"] = "-" if gone else "+" if added else "~" if changes else "="
        if node.is_variable and not name:
            made["status"] = "="
        optional: dict[str, Any] = {
            "changes": [
                [*change] if change.was or change.now else [change.what] for change in changes
            ],
            "cause": "" if made["status"] == "=" else self._causes.of(node, made["status"]),
            "inputs": self._entries(node.inputs),
            "attrs": _attributes(node),
            "types": (self._old_types if gone else self._types).get(node, []),
            "origin": origin_of(node),
            "line": "" if gone else self._after.lines.get(node.name, ""),
        }
        if was is not None:
            old_types = self._old_types.get(was, [])
            if old_types and old_types != optional["types"]:
                optional["old_types"] = old_types
        if was is not None and changes:
            optional["old"] = self._entries(was.inputs)
        if node.is_variable:
            optional["weight"] = _weight(self._before if gone else self._after, node)
            if any(change.what.startswith("weight") for change in changes):
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


class _Causes:
    """The rules and passes that changed nodes."""

    def __init__(self, nodes: Sequence[Node], steps: Steps) -> None:
        self._rules: dict[str, str] = {}
        for node in nodes:
            for rule in rules_of(node)[-1:]:
                self._rules |= dict.fromkeys((*origin_of(node), node.name), rule)
        self._first: dict[str, str] = {}
        self._last: dict[str, str] = {}
        for name, changed in steps:
            self._first = dict.fromkeys(changed, name) | self._first
            self._last |= dict.fromkeys(changed, name)

    def of(self, node: Node, status: str) -> str:
        """Return the rule or pass that added a node, or changed or removed it last."""
        if node.name in self._rules:
            return f"rule {self._rules[node.name]}"
        return (self._first if status == "+" else self._last).get(node.name, "")


def _ordered(nodes: Sequence[Node], needs: tuple[list[list[int]], list[list[int]]]) -> list[Node]:
    """Return the nodes of both graphs in order; ignore the graph before if both make a cycle."""
    now, was = needs
    both = [[*one, *two] for one, two in zip(now, was, strict=True)]
    order = depth_first_order(now if stuck_items(both) else both)
    return [nodes[place] for place in order]


def _types(side: Side) -> dict[Node, list[str]]:
    """Return the types of the outputs of nodes as text, with names of open dimensions."""
    graph = side.graph
    try:
        known = infer(graph, {}).outputs
    except PasslibError:  # inconsistent shapes, unknown operators, no package onnx
        return {}
    named: Mapping[Node, Sequence[Described | None]] = {}
    if any(None in (spec.shape or ()) for specs in known.values() for spec in specs):
        family = dialects.find(graph.dialect)
        data = ModelData(graph.graph, graph.attributes, side.weights)
        with suppress(PasslibError):
            named = family.described(graph, data)
    return {node: _texts(specs, named.get(node, ())) for node, specs in known.items()}


def _texts(specs: Sequence[TypeSpec], named: Sequence[Described | None]) -> list[str]:
    texts = []
    for spec, other in zip_longest(specs, named[: len(specs)]):
        each = with_names("", spec, other)
        shape = "" if each.shape is None else shape_text(each.shape)
        texts.append(f"{each.dtype or ''} {shape}".strip())
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
    steps: Steps = (),
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
    steps : sequence of (str, sequence of str)
        See `graphs_of`.
    """
    counts = [operators_of(side.graph.graph) for side in (before, after) if side is not None]
    totals = " \N{RIGHTWARDS ARROW} ".join(f"{count.total():,}" for count in counts)
    return {
        "graphs": graphs_of(after, before, steps),
        "compares": before is not None,
        "noted": bool(after.notes),
        "facts": [["operators", totals], *(list(pair) for pair in facts)],
        "tables": [*tables, _operators(counts)],
    }


def _operators(counts: Sequence[Counter[str]]) -> dict[str, Any]:
    """Return the table that the command prints; operators whose number changed come first."""
    names = {*counts[0], *counts[-1]}
    rows: list[list[Any]] = [[name, *(count[name] for count in counts)] for name in names]
    rows.sort(key=lambda row: (row[1] == row[-1], -row[1], row[0]))
    total = ["total", *(count.total() for count in counts)]
    columns = ["operator", "before", "after"] if len(counts) > 1 else ["operator", "count"]
    return {"title": "Operators", "columns": columns, "rows": [total, *rows]}
