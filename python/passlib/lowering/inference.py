"""Types and shapes of every value of a graph, inferred without computing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from passlib.graph.node import Node
from passlib.lowering.table import Lowerings
from passlib.lowering.types import TypeSpec, Value
from passlib.lowering.walk import Complete, Graph, Walk


class TypeInference(NamedTuple):
    """The result of `infer_graph`: the types of values, as far as they are known.

    ``overriding`` has the full attribute ``shape`` of those creating operators that left sizes
    open.
    """

    value_of: Mapping[tuple[Node, int], Value]
    overriding: Mapping[Node, Mapping[str, str]]


def infer_graph(
    graph: Graph,
    table: Lowerings,
    known: Mapping[str, TypeSpec],
    complete: Complete,
    leaves_open: Callable[[Node], bool] = lambda _: False,
    *,
    default: Callable[[Node], np.dtype] | None = None,
    train: bool = False,
) -> TypeInference:
    """Infer forward by lowering and backward by the operators' rules, until nothing changes.

    ``known`` has types of the variables, ``complete`` are the dialect's rules. ``leaves_open``
    tells nodes that create arrays some of whose sizes must follow from other nodes; ``default``
    returns the element type of a variable for which none can be inferred. Raises `GraphError` if
    shapes or types contradict each other; the message names the node.
    """
    nodes = graph.nodes()
    specs = dict(known)
    overriding: dict[Node, Mapping[str, str]] = {}
    creating = [node for node in nodes if leaves_open(node)]
    while True:
        walk = Walk(
            graph, table, train=train, types_only=True, complete=complete, overriding=overriding
        )
        walk.variables(specs, {})
        walk.run()
        for node in reversed(nodes):
            if node.inputs:
                inputs = [walk.value_of[entry.node, entry.index] for entry in node.inputs]
                complete(node, inputs, _outputs(node, walk.value_of))
        news = _learn(nodes, creating, walk.value_of, specs, overriding)
        if not news and default is not None:
            for node in nodes:
                if node.is_variable and specs[node.name].dtype is None:
                    specs[node.name] = specs[node.name]._replace(dtype=default(node))
                    news = True
        if not news:
            return TypeInference(walk.value_of, overriding)


def _outputs(node: Node, value_of: Mapping[tuple[Node, int], Value]) -> list[Value]:
    """Return the outputs of a node, the first of which always has a value."""
    values = [value_of[node, 0]]
    while (following := value_of.get((node, len(values)))) is not None:
        values.append(following)
    return values


def _learn(
    nodes: Sequence[Node],
    creating: Sequence[Node],
    value_of: Mapping[tuple[Node, int], Value],
    specs: dict[str, TypeSpec],
    overriding: dict[Node, Mapping[str, str]],
) -> bool:
    """Record the types found for variables and open sizes; return whether to run another round."""
    news = False
    unknown = False
    for node in nodes:
        value = value_of[node, 0]
        if node.is_variable:
            spec = TypeSpec(value.dtype, value.shape)
            news |= spec != specs.get(node.name, TypeSpec(None, None))
            specs[node.name] = spec
            continue
        unknown |= not value.known
    for node in creating:
        shape = value_of[node, 0].shape
        if node not in overriding and shape is not None and None not in shape:
            overriding[node] = {"shape": str(shape)}
            news = unknown = True
    return news and unknown
