"""Graphs in which other nodes take the place of some values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passlib.graph.node import Entry, Node, postorder


def with_sources(
    entries: Sequence[Entry], sources: Mapping[tuple[Node, int], Node]
) -> tuple[Entry, ...]:
    """Return the outputs of a graph that is cut at some values.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs of the graph, which stays as it is; the new graph shares the nodes that need no
        change.
    sources : mapping of (Node, int) to Node
        The variable that takes the place of a value.

    Returns
    -------
    tuple of Entry
        Control dependencies on nodes that no output needs any more are gone.
    """
    needed = _needed(entries, sources)
    new: dict[int, Node] = {}

    def follow(entry: Entry) -> Entry:
        source = sources.get((entry.node, entry.index))
        return entry._replace(node=new[id(entry.node)]) if source is None else Entry(source)

    for node in postorder(entry.node for entry in entries):
        if id(node) not in needed:
            continue
        inputs = [follow(entry) for entry in node.inputs]
        deps = [new[id(dep)] for dep in node.control_deps if id(dep) in needed]
        same = all(a.node is b.node for a, b in zip(inputs, node.inputs, strict=True))
        same = same and len(deps) == len(node.control_deps)
        if same and all(a is b for a, b in zip(deps, node.control_deps, strict=True)):
            new[id(node)] = node
        else:
            outputs, nested = node.num_outputs, node.subgraphs
            new[id(node)] = Node(node.op, node.name, node.attrs, inputs, outputs, deps, nested)
    return tuple(follow(entry) for entry in entries)


def _needed(entries: Sequence[Entry], sources: Mapping[tuple[Node, int], Node]) -> set[int]:
    """Return the identities of the nodes that the outputs need, given the sources."""
    found: set[int] = set()
    pending = list(entries)
    while pending:
        entry = pending.pop()
        if (entry.node, entry.index) in sources or id(entry.node) in found:
            continue
        found.add(id(entry.node))
        pending.extend(entry.node.inputs)
    return found
