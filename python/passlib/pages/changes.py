"""What differs between two nodes, and between the weights of two models, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.dialects.onnx.attributes import OUTER
from passlib.graph.node import Entry, Node
from passlib.graph.plain import PlainGraph
from passlib.pages.pairing import has_name, pair_nodes


def node_changes(old: Node, new: Node, stands_for: Mapping[Node, Node]) -> list[str]:
    """Describe what differs between a node and the one that it stands for.

    Attributes that begin with two underscores are bookkeeping and do not count, but the declared
    shapes and types of variables do.

    Parameters
    ----------
    old, new : Node
    stands_for : mapping of Node to Node
        The node before, by the node after that stands for it: an input that has another name only
        has not changed.
    """
    found = []
    if old.name != new.name and (has_name(old) or has_name(new)):
        found.append(f"name {old.name} -> {new.name}")
    if old.op != new.op:
        found.append(f"operator {old.op} -> {new.op}")
    for key in sorted({*old.attrs, *new.attrs}):
        left, right = old.attrs.get(key), new.attrs.get(key)
        declared = new.is_variable and key in ("__shape__", "__dtype__")
        if left != right and (declared or not key.startswith("__")):
            found.append(f"attribute {key}: {_short(left)} -> {_short(right)}")
    if len(old.inputs) != len(new.inputs):
        names = [", ".join(map(_value, node.inputs)) or "none" for node in (old, new)]
        found.append(f"inputs {names[0]} -> {names[1]}")
    else:
        pairs = enumerate(zip(old.inputs, new.inputs, strict=True))
        found += [
            f"input {i}: {_value(one)} -> {_value(two)}"
            for i, (one, two) in pairs
            if stands_for.get(two.node) is not one.node or one.index != two.index
        ]
    if old.num_outputs != new.num_outputs:
        found.append(f"number of outputs {old.num_outputs} -> {new.num_outputs}")
    return found + _nested_changes(old, new)


def _nested_changes(old: Node, new: Node) -> list[str]:
    if len(old.subgraphs) != len(new.subgraphs):
        return [f"nested graphs {len(old.subgraphs)} -> {len(new.subgraphs)}"]
    found = []
    for i, (one, two) in enumerate(zip(old.subgraphs, new.subgraphs, strict=True)):
        if not one.graph.equals(two.graph):
            text = _graph_changes(one, two)
            found += [f"nested graph {i}: {text}"] if text else []
    return found


def _graph_changes(one: PlainGraph, two: PlainGraph) -> str:
    """Return the names of the nodes of a nested graph that differ; empty if none does."""
    known = pair_nodes(one, two).old
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
    """Whether nodes differ, other than by the names of values that are captured."""
    return OUTER not in new.attrs and bool(node_changes(old, new, stands_for))


def _value(entry: Entry) -> str:
    return f"{entry.node.name}:{entry.index}" if entry.index else entry.node.name


def _short(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= 60 else f"{text[:57]}..."


def weight_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Describe what differs between the weights that two models both have, by name.

    Parameters
    ----------
    old, new : mapping of str to array
    """
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
