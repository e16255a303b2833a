"""Nodes whose values ONNX's inference must not follow element by element.

With ``data_prop``, which is meant for shapes that a model computes, onnx 1.23 holds an object for
each element of a vector that these operators take, whatever its type: 5 GB for 10 ** 8 numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

MOST_ELEMENTS: Final = 4096
"""Elements of a vector that are followed: more than any shape has axes."""

_FOLLOWED: Final = frozenset(
    ("Add", "Cast", "Concat", "Gather", "MeanVarianceNormalization", "Mul", "Size", "Slice",
     "Squeeze", "Sub", "Unsqueeze")
)  # fmt: skip
"""The operators of ONNX whose inference has ``data_prop`` rules for vectors, or whose bodies do."""


def followed_nodes(model: Any, graphs: Sequence[Any]) -> list[tuple[int, int]]:
    """Find the nodes that take a vector of more elements, or of an unknown number.

    Parameters
    ----------
    model : onnx.ModelProto
        With the types of its values as far as they are known.
    graphs : sequence of onnx.GraphProto
        Those of the model, in the order of `graphs_within`.

    Returns
    -------
    list of (int, int)
        Number of the graph and of the node in it. Nodes that call functions of the model are among
        them: what happens inside is not known.
    """
    functions = {(function.domain, function.name) for function in model.functions}
    small = {name for graph in graphs for name in _small_values(graph)}
    large = {name for graph in graphs for name in _values(graph)} - small
    found = []
    for number, graph in enumerate(graphs):
        for place, node in enumerate(graph.node):
            if (node.domain, node.op_type) in functions or (
                node.domain in ("", "ai.onnx")
                and node.op_type in _FOLLOWED
                and not large.isdisjoint(node.input)
            ):
                found.append((number, place))
    return found


def _values(graph: Any) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (name for node in graph.node for name in node.output if name)


def _small_values(graph: Any) -> Iterator[str]:
    """Iterate over the values that are no vectors, or vectors of few elements."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if value.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
            continue
        dims = tensor.shape.dim
        if len(dims) != 1 or (dims[0].HasField("dim_value") and dims[0].dim_value <= MOST_ELEMENTS):
            yield value.name
    for weight in graph.initializer:
        if len(weight.dims) != 1 or weight.dims[0] <= MOST_ELEMENTS:
            yield weight.name


def rename_operators(
    graphs: Sequence[Any], places: Sequence[tuple[int, int]], names: Sequence[str]
) -> list[str]:
    """Replace the operators of nodes, and return the former ones.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
    places : sequence of (int, int)
        Of nodes, see `followed_nodes`.
    names : sequence of str
        An operator for each of them.
    """
    nodes = [graphs[number].node[place] for number, place in places]
    before = [node.op_type for node in nodes]
    for node, name in zip(nodes, names, strict=True):
        node.op_type = name
    return before
