"""Functions of a model that call each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from passlib.dialects.onnx.messages import graphs_within
from passlib.errors import GraphError

_MOST_EXPANDED: Final = 10_000_000
"""The largest number of nodes that a model may have with all its functions expanded."""


def check_calls(model: Any) -> None:
    """Refuse functions that call themselves, or make a model too large when expanded."""
    bodies = {(f.domain, f.name): f for f in model.functions}
    if not bodies:
        return
    sizes: dict[tuple[str, str], int] = {}
    for key in bodies:
        _measure(key, bodies, sizes)
    if _size(model.graph, sizes) > _MOST_EXPANDED:
        raise GraphError(
            f"this model has more than {_MOST_EXPANDED} nodes when its functions are expanded"
        )


def _measure(
    start: tuple[str, str], bodies: Mapping[tuple[str, str], Any], sizes: dict[tuple[str, str], int]
) -> None:
    """Compute the size of a function, and of all that it calls."""
    path = [start]
    active = {start}
    while path:
        key = path[-1]
        called = {
            (node.domain, node.op_type)
            for graph in graphs_within(bodies[key])
            for node in graph.node
        }
        pending = [name for name in called & bodies.keys() if name not in sizes]
        if not pending:
            sizes[key] = _size(bodies[key], sizes)
            active.discard(path.pop())
        elif active.intersection(pending):
            raise GraphError(f"function {key[1]!r} of domain {key[0]!r} calls itself")
        else:
            path.append(pending[0])
            active.add(pending[0])


def _size(body: Any, sizes: Mapping[tuple[str, str], int]) -> int:
    return sum(
        1 + sizes.get((node.domain, node.op_type), 0)
        for graph in graphs_within(body)
        for node in graph.node
    )
