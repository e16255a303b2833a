"""The lowering of MXNet symbols to ONNX."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from passlib.graph.node import Node
from passlib.lowering import Graph, Lowered, TypeSpec, lower_graph
from passlib.mxnet.inference.infer import complete
from passlib.mxnet.inference.open_sizes import open_sizes
from passlib.mxnet.lowering import table_for
from passlib.mxnet.lowering.refused import reason
from passlib.mxnet.numpy_mode import mode_of
from passlib.mxnet.schema.calls import check_nodes


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower a symbol; see `Dialect.lower`."""
    # Right attributes would not make a refused operator run: its reason is said, and inference
    # names mistakes in them.
    check_nodes(node for node in graph.nodes() if reason(node.op) is None)
    names = {node.name for node in graph.nodes() if node.is_variable}
    known = {
        name: TypeSpec(array.dtype, array.shape) for name, array in params.items() if name in names
    }
    with mode_of(graph):
        return lower_graph(
            graph,
            table_for(graph),
            inputs,
            params,
            train=train,
            complete=complete,
            overriding=open_sizes(graph, {**known, **inputs}, train=train),
            spared=() if train else _of_labels(graph),
        )


_LABELLED = frozenset(
    ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput",
     "Softmax", "SoftmaxOutput", "_sparse_LinearRegressionOutput",
     "_sparse_LogisticRegressionOutput", "_sparse_MAERegressionOutput")
)  # fmt: skip
"""Operators whose inputs but the first affect only the gradient."""


def _of_labels(graph: Graph) -> set[Node]:
    """Return the nodes that only labels depend on."""
    nodes = graph.nodes()
    needed = {entry.node for entry in graph.entries}
    for node in reversed(nodes):
        if node in needed:
            read = node.inputs[:1] if node.op in _LABELLED else node.inputs
            needed.update(entry.node for entry in read)
    return set(nodes) - needed
