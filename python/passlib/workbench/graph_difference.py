"""What differs between the graphs and weights of two models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.graph.node import Entry, Node
from passlib.model import Model

__all__ = ["ModelDifference", "NodeChange", "diff"]


@dataclass(frozen=True)
class NodeChange:
    """A node that both models have, with what differs.

    Attributes
    ----------
    name, op : str
        In the second model.
    changes : tuple of str
        One text each: ``"attribute axis: 1 -> 2"``.
    """

    name: str
    op: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return f"~ {self.name} ({self.op}): {'; '.join(self.changes)}"


@dataclass(frozen=True)
class ModelDifference:
    """The result of `diff`.

    Attributes
    ----------
    removed, added : tuple of (str, str)
        Name and operator of nodes that one model alone has; of variables the operator is "null".
    changed : tuple of NodeChange
    weights : tuple of (str, str)
        Name, and what differs.
    outputs : tuple of str
        What differs in the outputs.
    """

    removed: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]
    changed: tuple[NodeChange, ...]
    weights: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not (self.removed or self.added or self.changed or self.weights or self.outputs)

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"- {_title(name, op)}" for name, op in self.removed]
        lines += [f"+ {_title(name, op)}" for name, op in self.added]
        lines += map(str, self.changed)
        lines += [f"~ weight {name}: {what}" for name, what in self.weights]
        lines += [f"~ outputs: {what}" for what in self.outputs]
        counts = (
            (len(self.removed), "removed"),
            (len(self.added), "added"),
            (len(self.changed), "changed"),
        )
        nodes = ", ".join(f"{count} {word}" for count, word in counts)
        return "\n".join([*lines, f"nodes: {nodes}; weights: {len(self.weights)} changed"])


def diff(a: Model, b: Model) -> ModelDifference:
    """Compare two models by the names of their nodes and weights.

    Nodes of one name belong together in their order. Attributes that begin with two underscores
    are bookkeeping and do not count, but the declared shapes and types of variables do.

    Parameters
    ----------
    a, b : Model
        Before and after.

    Returns
    -------
    ModelDifference
    """
    old: dict[str, list[Node]] = defaultdict(list)
    for node in reversed(a.symbol.nodes()):
        old[node.name].append(node)
    added, changed = [], []
    for node in b.symbol.nodes():
        if not old[node.name]:
            added.append((node.name, node.op))
            continue
        changes = tuple(_changes(old[node.name].pop(), node))
        if changes:
            changed.append(NodeChange(node.name, node.op, changes))
    left = {id(node) for nodes in old.values() for node in nodes}
    removed = [(node.name, node.op) for node in a.symbol.nodes() if id(node) in left]
    before, after = a.outputs, b.outputs
    return ModelDifference(
        tuple(removed),
        tuple(added),
        tuple(changed),
        tuple(_weights({**a.args, **a.aux}, {**b.args, **b.aux})),
        () if before == after else (f"{', '.join(before)} -> {', '.join(after)}",),
    )


def _title(name: str, op: str) -> str:
    return f"{name} (variable)" if op == "null" else f"{name} ({op})"


def _changes(old: Node, new: Node) -> list[str]:
    found = []
    if old.op != new.op:
        found.append(f"operator {old.op} -> {new.op}")
    for key in sorted({*old.attrs, *new.attrs}):
        left, right = old.attrs.get(key), new.attrs.get(key)
        declared = new.is_variable and key in ("__shape__", "__dtype__")
        if left != right and (declared or not key.startswith("__")):
            found.append(f"attribute {key}: {_short(left)} -> {_short(right)}")
    inputs = [[_value(entry) for entry in node.inputs] for node in (old, new)]
    if len(inputs[0]) != len(inputs[1]):
        found.append(f"inputs {', '.join(inputs[0]) or 'none'} -> {', '.join(inputs[1]) or 'none'}")
    else:
        pairs = enumerate(zip(*inputs, strict=True))
        found += [f"input {i}: {one} -> {two}" for i, (one, two) in pairs if one != two]
    if old.num_outputs != new.num_outputs:
        found.append(f"number of outputs {old.num_outputs} -> {new.num_outputs}")
    nested = [[graph.graph for graph in node.subgraphs] for node in (old, new)]
    if len(nested[0]) != len(nested[1]):
        found.append(f"nested graphs {len(nested[0])} -> {len(nested[1])}")
    else:
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


def _weights(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name in old:
        if name not in new or old[name] is new[name]:
            continue
        one, two = old[name], new[name]
        if one.shape != two.shape or one.dtype != two.dtype:
            found.append((name, f"{one.dtype} {one.shape} -> {two.dtype} {two.shape}"))
            continue
        left, right = _plain(one), _plain(two)
        if left.tobytes() != right.tobytes():
            count = int(np.count_nonzero(left != right))
            found.append((name, f"{count} of {left.size} values"))
    return found


def _plain(array: Any) -> np.ndarray[Any, Any]:
    dense = array.asnumpy() if isinstance(array, BaseSparseNDArray) else array
    return np.asarray(dense).view(np.ndarray)
