"""Counts of operators, which walks note on their way, are those of the nodes that there are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import passlib

PASSES: dict[str, dict[str, str]] = {
    "addBias": {},
    "appendRelu": {},
    "changeAttributes": {},
    "cutAfterFirst": {},
    "deleteLast": {},
    "nest": {},
    "nestInHead": {},
    "removeOperator": {"op": "Activation"},
    "renameOperators": {"prefix": "my"},
    "reverseNodes": {},
    "splitHead": {},
}
"""Those of tests/plugins/edits.cc, with their options."""


def node(op: str, name: str, *inputs: list[int], **members: Any) -> dict[str, Any]:
    return {"op": op, "name": name, "inputs": list(inputs), **members}


def graph(*nodes: dict[str, Any], heads: list[list[int]], **members: Any) -> dict[str, Any]:
    variables = [i for i, each in enumerate(nodes) if each["op"] == "null"]
    return {"nodes": list(nodes), "arg_nodes": variables, "heads": heads, **members}


X = node("null", "x")
INNER = graph(X, node("relu", "r", [0, 0, 0]), node("exp", "e", [0, 0, 0]), heads=[[1, 0, 0]])
FILES = {
    "a chain": graph(X, node("relu", "a", [0, 0, 0]), node("exp", "b", [1, 0]), heads=[[2, 0]]),
    "what no output needs": graph(
        X, node("relu", "a", [0, 0, 0]), node("exp", "dead", [1, 0, 0]), heads=[[1, 0, 0]]
    ),
    "consumers first": graph(
        node("relu", "a", [1, 0, 0]), node("null", "x"), heads=[[0, 0, 0]], node_row_ptr=[0, 1, 2]
    ),
    "nested graphs": graph(
        X, node("_subgraph_op", "s", [0, 0, 0], subgraphs=[INNER]), heads=[[1, 0, 0]]
    ),
    "an alias": graph(X, node("identity", "a", [0, 0, 0]), heads=[[1, 0, 0]]),
    "a wrong number of outputs": graph(
        X, node("relu", "a", [0, 0, 0]), heads=[[1, 0, 0]], node_row_ptr=[0, 1, 4]
    ),
    "numbers of outputs by attributes": graph(
        X,
        node("split", "a", [0, 0, 0], attrs={"num_outputs": "3"}),
        node("split", "b", [1, 2, 0], attrs={"num_outputs": "2"}),
        heads=[[2, 1, 0]],
    ),
    "more operators than models have": graph(
        X, *(node(f"op{i}", f"n{i}", [i, 0, 0]) for i in range(200)), heads=[[200, 0, 0]]
    ),
}


def check(symbol: passlib.symbol.Symbol) -> None:
    """Compare what is noted with the nodes, and the whole with what its text gives."""
    assert symbol.graph.operators() == Counter(each.op for each in symbol.nodes())
    again = passlib.sym.load_json(symbol.tojson())
    assert again.tojson() == symbol.tojson()
    assert again.graph.operators() == symbol.graph.operators()


@pytest.mark.parametrize("file", FILES)
def test_operators_of_files(file: str) -> None:
    check(passlib.sym.load_json(json.dumps(FILES[file])))


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.usefixtures("handover")
@pytest.mark.filterwarnings("ignore:the pass removed parameters")
def test_operators_after_a_pass(
    name: str,
    resnet: passlib.symbol.Symbol,
    load_plugin: Callable[[str], passlib.library.Library],
) -> None:
    load_plugin("edits")
    check(resnet)
    changed = resnet.optimize_for(name, **PASSES[name])
    check(changed)
    check(changed.optimize_for("reverseNodes"))


def test_operators_after_a_pass_in_python(resnet: passlib.symbol.Symbol) -> None:
    @passlib.graph_pass(name="leavesDeadNodes")
    def body(graph: passlib.Graph) -> None:
        graph.add_node("sigmoid", [graph.outputs[0]])

    check(resnet.optimize_for("leavesDeadNodes"))


def test_aliases_of_a_pass_are_replaced() -> None:
    @passlib.graph_pass(name="usesAnAlias")
    def body(graph: passlib.Graph) -> None:
        for each in graph.nodes:
            if not each.is_variable:
                each.op = "identity"

    changed = passlib.sym.relu(passlib.sym.var("x")).optimize_for("usesAnAlias")
    assert changed.graph.operators() == {"null": 1, "_copy": 1}
    check(changed)
