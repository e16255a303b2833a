"""Graphs without the casts of automatic mixed precision."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.graph.node import Entry, Node, postorder

MIXED_PRECISION = ("amp_cast", "amp_multicast")
"""The casts that automatic mixed precision puts in."""


def without_casts(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Rebuild the nodes without the casts of mixed precision, each replaced by its input.

    A cast that is an output itself stays, as in MXNet; so does one of a damaged file, which lacks
    the input of an output that is used.
    """
    made: dict[int, Node] = {}

    def follow(entry: Entry) -> Entry:
        while entry.node.op in MIXED_PRECISION and entry.index < len(entry.node.inputs):
            entry = entry.node.inputs[entry.index]
        return entry._replace(node=made.get(id(entry.node), entry.node))

    for node in postorder(entry.node for entry in entries):
        inputs = [follow(entry) for entry in node.inputs]
        if all(new.node is old.node for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        deps = [made.get(id(dep), dep) for dep in node.control_deps]
        made[id(node)] = Node(
            node.op, node.name, node.attrs, inputs, node.num_outputs, deps, node.subgraphs
        )
    return tuple(e._replace(node=made.get(id(e.node), e.node)) for e in entries)
