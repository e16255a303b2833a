"""Nodes of ONNX files that come before those that compute their inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from passlib.dialects.onnx.messages import graphs_within


class LateInput(NamedTuple):
    """A value that a node uses before it is computed.

    Attributes
    ----------
    node, source : int
        Numbers of the node, and of the later one that computes the value.
    name : str
        Of the value.
    """

    node: int
    source: int
    name: str


def late_inputs(graph: Any, known: Collection[str]) -> list[LateInput]:
    """Find the values that nodes of a graph use before they are computed.

    Parameters
    ----------
    graph : onnx.GraphProto
        Without those nested in it, whose uses of its values count as uses by the node that has
        them.
    known : collection of str
        Its inputs and initializers.

    Returns
    -------
    list of LateInput
        In the order of the nodes. A node that uses its own output is not among them.
    """
    computed = {name: n for n, node in enumerate(graph.node) for name in node.output if name}
    return [
        LateInput(number, source, name)
        for number, node in enumerate(graph.node)
        for name in _used(node)
        if (source := computed.get(name, -1)) > number and name not in known
    ]


def _used(node: Any) -> Iterator[str]:
    """Iterate over the values that a node uses, in its nested graphs too."""
    yield from node.input
    bodies = [value.g for value in node.attribute if value.HasField("g")]
    bodies += [body for value in node.attribute for body in value.graphs]
    inner = list(graphs_within(*bodies))
    if not inner:
        return
    own = {name for body in inner for child in body.node for name in child.output}
    own.update(value.name for body in inner for value in body.input)
    own.update(tensor.name for body in inner for tensor in body.initializer)
    for body in inner:
        names = (name for child in body.node for name in child.input)
        yield from (name for name in (*names, *(v.name for v in body.output)) if name not in own)
