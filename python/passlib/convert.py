"""Graphs in their two forms: the native one, and nodes that Python can share and walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from passlib import _core
from passlib.dialects.mxnet import schema, symbol_file
from passlib.node import Entry, Node, postorder

if TYPE_CHECKING:
    from passlib.symbol import Symbol

__all__ = [
    "MIXED_PRECISION",
    "freeze",
    "output_name",
    "thaw",
    "visible_outputs",
    "without_casts",
]

MIXED_PRECISION = ("amp_cast", "amp_multicast")
"""The casts that automatic mixed precision puts in."""


def thaw(graph: _core.Graph) -> tuple[Entry, ...]:
    """Make nodes of a native graph in post-order, and give its outputs."""
    from passlib.symbol import Symbol

    nodes: list[Node] = []
    for op_name, name, attrs, inputs, num_outputs, deps, subgraphs in graph.nodes():
        nodes.append(
            Node(
                op_name,
                name,
                attrs,
                [Entry(nodes[i], index, version) for i, index, version in inputs],
                num_outputs,
                [nodes[i] for i in deps],
                [Symbol.of_graph(subgraph) for subgraph in subgraphs],
            )
        )
    return tuple(Entry(nodes[i], index, version) for i, index, version in graph.heads())


def freeze(entries: Sequence[Entry]) -> _core.Graph:
    """Make the native graph of these outputs, in post-order.

    Raises
    ------
    GraphError
        Two variables have one name, or an output is used that its node does not have.
    """
    nodes = postorder(entry.node for entry in entries)
    number = {id(node): i for i, node in enumerate(nodes)}
    described = [
        (
            node.op,
            node.name,
            dict(node.attrs),
            [(number[id(e.node)], e.index, e.version) for e in node.inputs],
            node.num_outputs,
            [number[id(dep)] for dep in node.control_deps],
            [cast("Symbol", subgraph).graph for subgraph in node.subgraphs],
        )
        for node in nodes
    ]
    graph = _core.Graph.build(
        described, [(number[id(e.node)], e.index, e.version) for e in entries]
    )
    graph.check()
    symbol_file.complete(graph)
    return graph


def without_casts(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Rebuild the nodes without the casts of mixed precision, each replaced by its input.

    A cast that is an output itself stays, as in MXNet.
    """
    made: dict[int, Node] = {}

    def follow(entry: Entry) -> Entry:
        while entry.node.op in MIXED_PRECISION:
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


def visible_outputs(node: Node) -> int:
    """Count the outputs that other nodes may use."""
    if node.is_variable:
        return 1
    operator = schema.find(node.op)
    visible = operator.num_visible_outputs(node.attrs) if operator is not None else 0
    return visible or max(node.num_outputs, 1)


def output_name(entry: Entry) -> str:
    """Name an output as MXNet does: ``fc1_output``, ``bn_mean``; a variable by its own name."""
    node, index, _ = entry
    if node.is_variable:
        return node.name
    operator = schema.find(node.op)
    names = operator.output_names(node.attrs) if operator is not None else ()
    if index < len(names):
        return f"{node.name}_{names[index]}"
    return f"{node.name}_output" + (str(index) if node.num_outputs > 1 else "")
