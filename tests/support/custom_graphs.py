"""Graphs with operators of the test library graph_operators, and hand-written subgraph nodes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from passlib import sym

X = np.array([[1, -1, 2], [0.5, -2, 3]], np.float32)
W = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def relu(x: np.ndarray) -> np.ndarray:
    """Compute max(x, 0)."""
    return np.maximum(x, 0)


def inner_graph() -> sym.Symbol:
    """Return log(exp(a0) + b0) and exp(b0)."""
    a, b = sym.var("a0"), sym.var("b0")
    return sym.Group([sym.log(sym.exp(a, name="e") + b, name="l"), sym.exp(b, name="e2")])


def partitioned(
    inner: sym.Symbol, inputs: list[str], extra: int | None = None, op: str = "tp_subgraph"
) -> sym.Symbol:
    """Return the outputs of a node ``_op0`` that runs a graph on these variables.

    ``extra`` is the number of inputs beyond those of the graph, as stated on the node.
    """
    text: dict[str, Any] = json.loads(inner.tojson())
    del text["attrs"]
    nodes: list[dict[str, Any]] = [{"op": "null", "name": n, "inputs": []} for n in inputs]
    node: dict[str, Any] = {
        "op": op,
        "name": "_op0",
        "inputs": [[i, 0, 0] for i in range(len(inputs))],
        "subgraphs": [text],
    }
    if extra is not None:
        node["attrs"] = {"__ext_extra_inputs__": str(extra)}
    graph = {
        "nodes": [*nodes, node],
        "arg_nodes": list(range(len(inputs))),
        "heads": [[len(inputs), i, 0] for i in range(len(inner))],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return sym.load_json(json.dumps(graph))
