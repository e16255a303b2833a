"""What differs between two nodes, and between the weights of two models, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.graph.node import Entry, Node
from passlib.pages.pairing import has_name

__all__ = ["node_changes", "weight_changes"]


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
    nested = [[graph.graph for graph in node.subgraphs] for node in (old, new)]
    if len(nested[0]) != len(nested[1]):
        return [f"nested graphs {len(nested[0])} -> {len(nested[1])}"]
    found = []
    for i, (one, two) in enumerate(zip(*nested, strict=True)):
        if not one.equals(two):
            parts = zip(("removed", "added", "changed"), one.difference(two), strict=True)
            text = "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names)
            found.append(f"nested graph {i}: {text or 'outputs changed'}")
    return found


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
