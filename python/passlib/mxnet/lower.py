"""The lowering of MXNet symbols to ONNX."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from passlib.lowering import Graph, Lowered, TypeSpec, lower_graph
from passlib.mxnet.inference.open_sizes import open_sizes
from passlib.mxnet.inference.parameter_shapes import complete
from passlib.mxnet.lowering import table_for
from passlib.mxnet.lowering.refused import reason
from passlib.mxnet.numpy_mode import mode_of
from passlib.mxnet.schema.node_checks import check_nodes


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
        )
