"""Graphs to partition, and the inverse of partitioning."""

from __future__ import annotations

import json
import random
from typing import Any

import passlib

JsonNode = dict[str, Any]
Value = int | tuple[int, ...]


def graph_text(nodes: list[tuple[Any, ...]], heads: list[Value]) -> str:
    """Write a graph: nodes as (operator, name, inputs, attributes), inputs and heads as positions.

    An input may also be position and output, or position, output and version.
    """

    def entry(value: Value) -> list[int]:
        numbers = [value] if isinstance(value, int) else list(value)
        return numbers + [0] * (3 - len(numbers))

    listed = []
    for op, name, inputs, *rest in nodes:
        node: JsonNode = {"op": op, "name": name, "inputs": [entry(each) for each in inputs]}
        if rest:
            node["attrs"] = rest[0]
        listed.append(node)
    variables = [i for i, node in enumerate(listed) if node["op"] == "null"]
    return json.dumps(
        {
            "nodes": listed,
            "arg_nodes": variables,
            "heads": [entry(head) for head in heads],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
    )


CHAIN = graph_text(
    [
        ("null", "a", []),
        ("null", "b", []),
        ("elemwise_add", "sum", [0, 1]),
        ("exp", "e1", [2]),
        ("log", "l1", [3]),
        ("tanh", "t1", [4]),
        ("exp", "e2", [5]),
    ],
    [6, 3],
)
"""``e2 = exp(tanh(log(exp(a + b))))``; the inner exp is an output too."""


def nodes_of(text: str) -> dict[str, JsonNode]:
    """Return the nodes of a graph's text by name; names must be unique."""
    nodes: list[JsonNode] = json.loads(text)["nodes"]
    named = {node["name"]: node for node in nodes}
    assert len(named) == len(nodes)
    return named


def members(text: str) -> dict[str, list[str]]:
    """List the operators in each subgraph, by the name of its node."""
    return {
        name: [inner["name"] for inner in node["subgraphs"][0]["nodes"] if inner["op"] != "null"]
        for name, node in nodes_of(text).items()
        if "subgraphs" in node
    }


def run(text: str, backend: str = "partitionSupported", **options: object) -> str:
    """Partition a graph."""
    return passlib.sym.load_json(text).optimize_for(backend, **options).tojson()


def whole_again(text: str) -> str:
    """Undo the partitioning of a graph."""
    return passlib.sym.load_json(inlined(text)).tojson()


def inlined(text: str) -> str:
    """Replace subgraph nodes with the nodes of their subgraphs."""
    whole = json.loads(text)
    nodes: list[JsonNode] = []
    heads = _inline(whole, None, nodes)
    variables = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    return json.dumps(
        {"nodes": nodes, "arg_nodes": variables, "heads": heads, "attrs": whole["attrs"]}
    )


def _inline(
    graph: dict[str, Any], arguments: list[list[int]] | None, nodes: list[JsonNode]
) -> list[list[int]]:
    outputs: dict[tuple[int, int], list[int]] = {}
    waiting = iter(arguments or ())

    def follow(entry: list[int]) -> list[int]:
        found = outputs.get((entry[0], entry[1]))
        return found if found is not None else [outputs[entry[0], 0][0], *entry[1:]]

    for position, node in enumerate(graph["nodes"]):
        if node["op"] == "null" and arguments is not None:
            outputs[position, 0] = next(waiting)
            continue
        inputs = [[*follow(entry)[:2], entry[2] or follow(entry)[2]] for entry in node["inputs"]]
        if "subgraphs" in node:
            for i, entry in enumerate(_inline(node["subgraphs"][0], inputs, nodes)):
                outputs[position, i] = entry
            continue
        outputs[position, 0] = [len(nodes), 0, 0]
        nodes.append({**node, "inputs": inputs})
    return [follow(head) for head in graph["heads"]]


def random_text(rng: random.Random, size: int, groups: list[int], supported: float) -> str:
    """Generate a graph of operators whose values all have one shape.

    Parameters
    ----------
    rng : random.Random
    size : int
        Number of operators.
    groups : list of int
        Numbers for the attribute ``__group__``.
    supported : float
        Part of the operators that have that attribute.
    """
    variables = rng.randint(1, 3)
    nodes: list[tuple[Any, ...]] = [("null", f"v{i}", []) for i in range(variables)]
    values: list[Value] = list(range(variables))
    near = rng.random() < 0.5

    def pick() -> Value:
        last = len(values) - 1
        at = (
            max(0, last - rng.randint(0, 4))
            if near and rng.random() < 0.8
            else rng.randint(0, last)
        )
        return values[at]

    for i in range(size):
        attrs = {"__group__": str(rng.choice(groups))} if rng.random() < supported else {}
        kind = rng.choice(["one", "one", "two", "two", "two", "many", "two outputs"])
        op, count = {
            "one": (rng.choice(["exp", "log", "tanh", "relu"]), 1),
            "two": (rng.choice(["elemwise_add", "elemwise_mul"]), 2),
            "many": ("add_n", rng.randint(2, 5)),
            "two outputs": ("topk", 1),
        }[kind]
        if op == "add_n":
            attrs["num_args"] = str(count)
        if op == "topk":
            attrs |= {"ret_typ": "both", "k": "0"}
        nodes.append((op, f"n{i}", [pick() for _ in range(count)], attrs))
        if op == "topk":
            values.append((len(nodes) - 1, 1))
        values.append(len(nodes) - 1)
    heads = rng.sample(values, min(len(values), rng.randint(1, 3)))
    heads += [values[-1]] + heads[:1] * (rng.random() < 0.3)
    return graph_text(nodes, heads)
