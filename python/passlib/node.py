"""Nodes of a graph as Python sees them, and the one walk over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["VARIABLE", "Entry", "Node", "postorder"]

VARIABLE = "null"
"""The operator name of a variable, in NNVM and MXNet."""


class Entry(NamedTuple):
    """One output of a node, as it is used by another node or as an output of the graph."""

    node: Node
    index: int = 0  # type: ignore[assignment]
    version: int = 0
    """How often the variable was mutated in place before this use (NNVM's third number)."""


class Node:
    """An operator or a variable. Never changes once made; shared by all symbols that reach it.

    Parameters
    ----------
    op : str
        Operator name, ``"null"`` for a variable.
    name : str
    attrs : mapping of str to str
    inputs : iterable of Entry
        In the operator's order.
    num_outputs : int
        All outputs, the hidden ones included; 0 where nobody knows.
    control_deps : iterable of Node
        Nodes that must run before this one without giving it data.
    subgraphs : iterable
        Nested symbols (loop bodies, partitions).
    """

    __slots__ = ("attrs", "control_deps", "inputs", "name", "num_outputs", "op", "subgraphs")

    def __init__(
        self,
        op: str,
        name: str,
        attrs: Mapping[str, str] | None = None,
        inputs: Iterable[Entry] = (),
        num_outputs: int = 0,
        control_deps: Iterable[Node] = (),
        subgraphs: Iterable[object] = (),
    ) -> None:
        self.op = op
        self.name = name
        self.attrs: Mapping[str, str] = MappingProxyType(dict(attrs) if attrs else {})
        self.inputs = tuple(inputs)
        self.num_outputs = num_outputs
        self.control_deps = tuple(control_deps)
        self.subgraphs = tuple(subgraphs)

    @property
    def is_variable(self) -> bool:
        """Whether this node is an input or a parameter of the graph."""
        return self.op == VARIABLE

    def __repr__(self) -> str:
        return f"<Node {self.name!r}: {self.op}, {len(self.inputs)} inputs>"


def postorder(heads: Iterable[Node]) -> list[Node]:
    """Every node that the heads need, each after its inputs, as NNVM orders them.

    Heads are taken in order; of a node, first the inputs in order, then the control
    dependencies. Linear, and iterative: a chain of a million nodes is no deep recursion.
    """
    done: set[int] = set()
    order: list[Node] = []
    for head in heads:
        stack = [head]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            waiting = [e.node for e in node.inputs if id(e.node) not in done]
            waiting += [d for d in node.control_deps if id(d) not in done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            done.add(id(node))
            order.append(node)
            stack.pop()
    return order
