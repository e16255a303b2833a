"""Symbols described as plain data, for comparison."""

from __future__ import annotations

from typing import Any


def as_graph(symbol: Any) -> dict[str, Any]:
    """Describe a symbol as MXNet's JSON does."""
    nodes = symbol.nodes()
    number = {id(node): i for i, node in enumerate(nodes)}
    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + node.num_outputs)
    described = [
        {
            "op": node.op,
            "name": node.name,
            "inputs": [[number[id(n)], index, version] for n, index, version in node.inputs],
            **({"attrs": dict(node.attrs)} if node.attrs else {}),
        }
        for node in nodes
    ]
    return {
        "nodes": described,
        "arg_nodes": [i for i, node in enumerate(nodes) if node.is_variable],
        "node_row_ptr": rows,
        "heads": [[number[id(n)], index, version] for n, index, version in symbol.entries],
    }
