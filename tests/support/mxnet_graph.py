"""A reader of MXNet symbol files for tests that stand below `passlib.symbol`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from passlib.graph.node import Entry, Node, postorder


@dataclass(frozen=True)
class PlainGraph:
    """Heads and nodes, as lowering requires them."""

    entries: tuple[Entry, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    dialect: str = "mxnet"

    def nodes(self) -> list[Node]:
        return postorder(entry.node for entry in self.entries)

    def named(self, name: str) -> Node:
        return next(node for node in self.nodes() if node.name == name)


def read_graph(text: str) -> PlainGraph:
    return _graph(json.loads(text))


def _graph(document: dict[str, Any]) -> PlainGraph:
    rows = document.get("node_row_ptr")
    nodes: list[Node] = []
    for position, node in enumerate(document["nodes"]):
        nodes.append(
            Node(
                node["op"],
                node["name"],
                node.get("attrs") or node.get("attr") or node.get("param") or {},
                [Entry(nodes[entry[0]], *entry[1:]) for entry in node["inputs"]],
                num_outputs=rows[position + 1] - rows[position] if rows else 0,
                subgraphs=[_graph(nested) for nested in node.get("subgraphs", ())],
            )
        )
    heads = tuple(Entry(nodes[head[0]], *head[1:]) for head in document["heads"])
    return PlainGraph(heads, {"attrs": json.dumps(document.get("attrs", {}))})


def graph_of(
    op: str, inputs: list[str], attrs: dict[str, str] | None = None, outputs: int = 1
) -> PlainGraph:
    """Make the graph of one operator on variables."""
    node = Node(op, "op", attrs, [Entry(Node("null", name)) for name in inputs], outputs)
    return PlainGraph(tuple(Entry(node, index) for index in range(outputs)))
