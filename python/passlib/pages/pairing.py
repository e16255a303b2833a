"""Pairs the nodes of two graphs, and describes what changed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.dialects.onnx.attributes import DOCUMENT, ID, OUTER
from passlib.errors import PasslibError
from passlib.graph.node import Entry, Node
from passlib.graph.plain import ORIGIN, RULES, PlainGraph

Key = Callable[[Node], Hashable]


def has_name(node: Node) -> bool:
    """Whether a node has a name in the file, not one made of its operator and position."""
    return node.name != f"{node.op}_{node.attrs.get(ID)}"


def origin_of(node: Node) -> list[str]:
    """Return the names of the nodes that a rule replaced, the one with the node's value last."""
    return _names(node, ORIGIN)


def rules_of(node: Node) -> list[str]:
    """Return the names of the rules that made a node, the last one last."""
    return _names(node, RULES)


def _names(node: Node, key: str) -> list[str]:
    """Return a list of names; an empty one if the attribute is that of a file, with other text."""
    try:
        found = json.loads(node.attrs.get(key, "[]"))
    except (ValueError, RecursionError):
        return []
    return [str(name) for name in found] if isinstance(found, list) else []


def pair_nodes(before: PlainGraph, after: PlainGraph) -> dict[Node, Node]:
    """Return the node before for each node after that corresponds to it.

    Nodes are paired by name, in order of occurrence; nodes of two ONNX files without names by
    operator and the names of their values; the rest by operator, attributes, nested graphs and
    paired inputs.
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
    # Compare identity: two files may have equal bytes.
    if files[0] is files[1] is not None:
        pair(lambda node: node.name)
        pair_forms()
        return old
    pair(lambda node: node.name if has_name(node) else node)
    values = {**_values(before), **_values(after)}
    pair(lambda node: (node.op, values[node]) if node in values else node)
    # Captured variables are paired by the input that they represent.
    pair(lambda node: (OUTER, node.attrs[OUTER]) if OUTER in node.attrs else node)
    pair_forms()
    if files == [None, None]:  # such as nested graphs
        pair(lambda node: node.name)
    return old


def _values(graph: PlainGraph) -> dict[Node, str]:
    """Return the name of the first value of each node with named values."""
    nodes = [node for node in graph.nodes() if not node.is_variable and node.num_outputs]
    if DOCUMENT not in graph.attributes:
        return {}
    try:
        names = graph.with_entries([Entry(node) for node in nodes]).list_outputs()
    except PasslibError:
        return {}
    return dict(zip(nodes, names, strict=True))


def _form(node: Node, old: dict[Node, Node]) -> tuple[object, ...]:
    """Return the properties of a node except its name."""
    inputs = tuple((id(old.get(entry.node, entry.node)), entry.index) for entry in node.inputs)
    own = tuple(sorted((key, text) for key, text in node.attrs.items() if key[:2] != "__"))
    return node.op, own, inputs, node.num_outputs, len(node.subgraphs)


class Change(NamedTuple):
    """A difference between two paired nodes.

    Attributes
    ----------
    what : str
        Such as ``"attribute axis: "``; the whole text if there are no two values.
    """

    what: str
    was: str = ""
    now: str = ""

    @classmethod
    def of(cls, what: str, text: str) -> Change:
        """Return a change that ``text`` describes, with or without an arrow."""
        was, arrow, now = text.partition(" -> ")
        return cls(what, was, now) if arrow else cls(what + text)

    def __str__(self) -> str:
        return f"{self.what}{self.was} -> {self.now}" if self.was or self.now else self.what


def node_changes(old: Node, new: Node, stands_for: Mapping[Node, Node]) -> list[Change]:
    """Return the differences between two paired nodes.

    Attributes that begin with two underscores are ignored, except the declared shapes and dtypes of
    variables.

    Parameters
    ----------
    stands_for : mapping of Node to Node
        The pairs: an input that was only renamed has not changed.
    """
    found: list[Change] = []
    if old.name != new.name and (has_name(old) or has_name(new)):
        found.append(Change("name ", old.name, new.name))
    if old.op != new.op:
        found.append(Change("operator ", old.op, new.op))
    for key in sorted({*old.attrs, *new.attrs}):
        left, right = old.attrs.get(key), new.attrs.get(key)
        declared = new.is_variable and key in ("__shape__", "__dtype__")
        if left != right and (declared or not key.startswith("__")):
            found.append(Change(f"attribute {key}: ", _short(left), _short(right)))
    if len(old.inputs) != len(new.inputs):
        names = [", ".join(map(_value, node.inputs)) or "none" for node in (old, new)]
        found.append(Change("inputs ", *names))
    else:
        pairs = enumerate(zip(old.inputs, new.inputs, strict=True))
        found += [
            Change(f"input {i}: ", _value(one), _value(two))
            for i, (one, two) in pairs
            if stands_for.get(two.node) is not one.node or one.index != two.index
        ]
    if old.num_outputs != new.num_outputs:
        counts = [str(node.num_outputs) for node in (old, new)]
        found.append(Change("number of outputs ", *counts))
    return found + _nested_changes(old, new)


def _nested_changes(old: Node, new: Node) -> list[Change]:
    if len(old.subgraphs) != len(new.subgraphs):
        return [Change("nested graphs ", str(len(old.subgraphs)), str(len(new.subgraphs)))]
    found = []
    for i, (one, two) in enumerate(zip(old.subgraphs, new.subgraphs, strict=True)):
        if not one.graph.equals(two.graph):
            text = _graph_changes(one, two)
            found += [Change(f"nested graph {i}: {text}")] if text else []
    return found


def _graph_changes(one: PlainGraph, two: PlainGraph) -> str:
    """Return the names of different nodes of a nested graph, or an empty text."""
    known = pair_nodes(one, two)
    kept = set(known.values())
    parts = {
        "removed": [node.name for node in one.nodes() if node not in kept],
        "added": [node.name for node in two.nodes() if node not in known],
        "changed": [
            node.name for node in two.nodes() if node in known and _differ(known[node], node, known)
        ],
    }
    ends = [(known.get(entry.node), entry.index) for entry in two.entries]
    if ends != [(entry.node, entry.index) for entry in one.entries]:
        parts["changed"].append("outputs")
    return "; ".join(f"{word} {', '.join(names)}" for word, names in parts.items() if names)


def _differ(old: Node, new: Node, stands_for: Mapping[Node, Node]) -> bool:
    """Whether nodes differ, not only in the names of captured values."""
    return OUTER not in new.attrs and bool(node_changes(old, new, stands_for))


def _value(entry: Entry) -> str:
    return f"{entry.node.name}:{entry.index}" if entry.index else entry.node.name


def _short(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= 60 else f"{text[:57]}..."


def weight_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Describe the differences between common weights, by name."""
    found = {}
    for name in old:
        if name not in new or old[name] is new[name]:
            continue
        one, two = old[name], new[name]
        if one.shape != two.shape or one.dtype != two.dtype:
            found[name] = f"{one.dtype} {one.shape} -> {two.dtype} {two.shape}"
            continue
        left, right = _plain(one), _plain(two)
        if left.tobytes() != right.tobytes():
            count = int(np.count_nonzero(left != right))
            found[name] = f"{count} of {left.size} values"
    return found


def _plain(array: Any) -> np.ndarray[Any, Any]:
    dense = array.asnumpy() if isinstance(array, BaseSparseNDArray) else array
    return np.asarray(dense).view(np.ndarray)
