"""Passes that change the graph, and exactly what they must change."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import passlib
from passlib.symbol import Symbol

LoadPlugin = Callable[[str], passlib.library.Library]


def graph_of(symbol: Symbol) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in json.loads(symbol.tojson())["nodes"]}


@pytest.mark.usefixtures("handover")
class TestEdits:
    @pytest.fixture(autouse=True)
    def _library(self, load_plugin: LoadPlugin) -> None:
        load_plugin("edits")

    def test_add_a_node(self, resnet: Symbol) -> None:
        result = resnet.optimize_for("appendRelu")
        assert len(result.nodes()) == len(resnet.nodes()) + 1
        assert result.list_outputs() == ["appended0_output"]
        assert result.attr("act_type") == "relu"
        children = result.get_children()
        assert children is not None
        assert children.tojson() == resnet.tojson()

    def test_chain_of_passes(self, resnet: Symbol) -> None:
        result = resnet
        for i in range(5):
            result = result.optimize_for("appendRelu", suffix=f"_{i}")
        assert len(result.nodes()) == len(resnet.nodes()) + 5

    def test_remove_nodes(self, resnet: Symbol) -> None:
        result = resnet.optimize_for("removeOperator", op="Activation")
        names = [node["name"] for node in graph_of(resnet).values() if node["op"] != "Activation"]
        assert list(graph_of(result)) == names
        assert result.list_arguments() == resnet.list_arguments()

    def test_rename_nodes(self, resnet: Symbol) -> None:
        result = resnet.optimize_for("renameOperators", prefix="new_")
        text = resnet.tojson()
        for node in resnet.nodes():
            if not node.is_variable:
                text = text.replace(f'"name": "{node.name}"', f'"name": "new_{node.name}"')
        assert result.tojson() == text

    def test_change_attributes_of_graphs(self) -> None:
        variable = {"op": "null", "name": "x", "inputs": []}
        inner = {"nodes": [variable], "arg_nodes": [0], "heads": [[0, 0, 0]]}
        inner.update(list=[[], {"z": 1, "a": None}], k="\u00e9", drop={"b": 1.50})
        holder = {"op": "_holder", "name": "h", "inputs": [], "subgraphs": [inner], "drop": "not"}
        outer = {"nodes": [holder], "arg_nodes": [], "heads": [[0, 0, 0]]}
        version = {"mxnet_version": ["int", 10901]}
        symbol = passlib.sym.load_json(json.dumps({**outer, "attrs": version}))
        result = json.loads(symbol.optimize_for("editGraphAttributes").tojson())
        assert result["keys"] == ["dialect"]
        (node,) = result["nodes"]
        assert node["drop"] == "not"
        (nested,) = node["subgraphs"]
        assert nested["list"] == [[], {"a": None, "z": 1}, 2]
        assert nested["keys"] == ["drop", "k", "list"]
        assert (nested["count"], nested["k"], "drop" in nested) == (2, "\u00e9", False)

    def test_add_a_variable(self, resnet: Symbol) -> None:
        result = resnet.optimize_for("addBias")
        assert result.list_arguments() == [*resnet.list_arguments(), "added_bias"]
        assert result.attr_dict()["added_bias"] == {"__shape__": "(1,)"}

    def test_what_no_output_needs_is_gone(self, resnet: Symbol) -> None:
        with pytest.warns(UserWarning, match="the pass removed parameters"):
            result = resnet.optimize_for("cutAfterFirst")
        assert [node.op for node in result.nodes() if not node.is_variable] == ["Convolution"]
        assert result.list_inputs() == ["data", "resnetv10_conv0_weight"]

    def test_order_of_nodes_does_not_matter(self, resnet: Symbol) -> None:
        assert resnet.optimize_for("reverseNodes").tojson() == resnet.tojson()

    def test_nodes_deleted_by_hand(self, resnet: Symbol) -> None:
        result = passlib.sym.var("x")
        for i in range(8):
            result = passlib.sym.relu(result, name=f"relu{i}")
        for _ in range(6):
            result = result.optimize_for("deleteLast")
        assert [node.name for node in result.nodes()] == ["x", "relu0", "relu1"]

    def test_attributes_outlive_the_call(self) -> None:
        x = passlib.sym.var("x")
        pooled = passlib.sym.Pooling(x, kernel=(2, 2), name="pooled")
        taken = pooled.optimize_for("keepAttributes", what="take")
        assert taken.list_attr() == {}
        result = passlib.sym.relu(x).optimize_for("keepAttributes", what="give")
        assert result.list_attr() == pooled.list_attr() == {"kernel": "(2, 2)"}

    def test_nest_a_graph(self, resnet: Symbol) -> None:
        result = resnet.optimize_for("nest")
        (nested,) = result.nodes()[-1].subgraphs
        assert isinstance(nested, Symbol)
        assert nested.list_arguments() == resnet.list_arguments()
        assert result.optimize_for("nest").tojson().count('"subgraphs"') == 3

    def test_node_with_two_outputs(self, resnet: Symbol) -> None:
        result = resnet.optimize_for("splitHead")
        assert result.list_outputs() == ["split_output1"]
        before = json.loads(resnet.tojson())["node_row_ptr"]
        assert json.loads(result.tojson())["node_row_ptr"] == [*before, before[-1] + 2]
