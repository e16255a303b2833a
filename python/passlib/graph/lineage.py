"""Which nodes a new node stands for, in the bookkeeping attribute ``__origin__``."""

from __future__ import annotations

from passlib import _core

__all__ = ["ORIGIN", "without_origins"]

ORIGIN = "__origin__"
"""On nodes that patterns made: names of the nodes that they replaced, as a JSON list."""


def without_origins(graph: _core.Graph) -> _core.Graph:
    """Return a graph for a file: the same one, or a copy without `ORIGIN`."""
    if not graph.has_node_attribute(ORIGIN):
        return graph
    copy = graph.copy()
    copy.drop_node_attributes([ORIGIN])
    return copy
