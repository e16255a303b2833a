"""Aliases of operators: MXNet writes the registered name, whatever a file or a pass said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from passlib import sym
from passlib.graph.node import Entry, Node
from passlib.mxnet import schema

ALIASES = [
    ("identity", "_copy"),
    ("flatten", "Flatten"),
    ("stop_gradient", "BlockGrad"),
    ("_npx_relu", "_npx_relu"),
    ("ElementWiseSum", "add_n"),
    ("_Plus", "elemwise_add"),
    ("no_such_operator", "no_such_operator"),
]


def text_of(op: str, subgraphs: list[Any] | None = None) -> str:
    operator = schema.find(op)
    count = 2 if operator is None or operator.takes_any_number else len(operator.declared_inputs)
    node: dict[str, Any] = {"op": op, "name": "n", "inputs": [[i, 0, 0] for i in range(count)]}
    if subgraphs:
        node["subgraphs"] = subgraphs
    variables = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(count)]
    graph = {
        "nodes": [*variables, node],
        "arg_nodes": list(range(count)),
        "heads": [[count, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return json.dumps(graph)


@pytest.mark.parametrize(("alias", "name"), ALIASES)
def test_registered_name_is_written(alias: str, name: str) -> None:
    read = sym.load_json(text_of(alias))
    assert [node.op for node in read.nodes()][-1] == name
    assert json.loads(read.tojson())["nodes"][-1]["op"] == name
    made = sym.Symbol([Entry(Node(alias, "n", {}, [*sym.var("x").entries]))])
    assert json.loads(made.tojson())["nodes"][-1]["op"] == name


def test_registered_name_is_written_in_nested_graphs() -> None:
    nested = json.loads(text_of("identity"))
    read = sym.load_json(text_of("_foreach", [nested]))
    assert json.loads(read.tojson())["nodes"][-1]["subgraphs"][0]["nodes"][-1]["op"] == "_copy"


def test_every_alias_is_written_as_its_operator() -> None:
    for alias in schema.names():
        operator = schema.find(alias)
        assert operator is not None
        if not operator.takes_any_number and operator.makes_variables:
            node = json.loads(sym.load_json(text_of(alias)).tojson())["nodes"][-1]
            assert node["op"] == operator.name
