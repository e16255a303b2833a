"""Graphs of any size whose shapes are hard to partition in linear time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Nodes = list[tuple[Any, ...]]


def chain(size: int, every: int) -> Nodes:
    """Make a chain of operators; one in ``every`` is supported."""
    operators = [("exp" if i % every == 0 else "tanh", f"n{i}", [i]) for i in range(size)]
    return [("null", "x", []), *operators]


def ladder(size: int) -> Nodes:
    """Connect supported operators directly and through an unsupported one."""
    nodes: Nodes = [("null", "x", []), ("exp", "s", [0])]
    for i in range(0, size, 2):
        last = len(nodes) - 1
        nodes.append(("tanh", f"u{i}", [last]))
        nodes.append(("elemwise_add", f"s{i}", [last, last + 1]))
    return nodes


def star(size: int) -> Nodes:
    """Connect the first operator to all others, and all others to the last."""
    leaves = [("exp" if i % 2 else "tanh", f"n{i}", [1]) for i in range(size)]
    total = ("add_n", "sum", list(range(2, size + 2)), {"num_args": str(size)})
    return [("null", "x", []), ("exp", "hub", [0]), *leaves, total]


def long_ways(size: int) -> Nodes:
    """Make supported pairs, all connected through the same long chain."""
    count = size // 4
    nodes: Nodes = [("null", "x", []), *[("exp", f"a{i}", [0]) for i in range(count)]]
    nodes.append(("add_n", "all", list(range(1, count + 1)), {"num_args": str(count)}))
    nodes += [("tanh", f"t{i}", [count + 1 + i]) for i in range(2 * count)]
    end = len(nodes) - 1
    pairs = [("elemwise_mul", f"b{i}", [i + 1, end]) for i in range(count)]
    return [*nodes, *pairs, ("add_n", "sum", list(range(end + 1, end + 1 + count)))]


def residual(size: int) -> Nodes:
    """Make a supported stream with parallel blocks that have one unsupported operator."""
    nodes: Nodes = [("null", "x", []), ("exp", "s", [0])]
    for i in range(0, size, 4):
        stream = len(nodes) - 1
        nodes.append(("exp", f"q{i}", [stream]))
        nodes.append(("tanh", f"t{i}", [stream + 1]))
        nodes.append(("exp", f"o{i}", [stream + 2]))
        nodes.append(("elemwise_add", f"s{i}", [stream, stream + 3]))
    return nodes


SHAPES: dict[str, tuple[Callable[[int], Nodes], Callable[[int], int | None]]] = {
    # With the number of subgraphs where it is obvious.
    "every second": (lambda size: chain(size, 2), lambda size: size // 2),
    "all": (lambda size: chain(size, 1), lambda size: 1),
    "ladder": (ladder, lambda size: size // 2 + 1),
    "star": (star, lambda size: 2),
    "long ways": (long_ways, lambda size: None),
    "residual": (residual, lambda size: None),
}
OPS = "exp,elemwise_add,elemwise_mul,add_n"
