"""Upgrading old graphs, against the result of MXNet 1.9.1 for the same files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import places
from legacy_cases import GRAPHS, VERSIONS, versioned
from passlib.graph.node import Entry, Node
from passlib.mxnet import reading as legacy
from passlib.mxnet import schema
from passlib.symbol import Symbol
from symbol_graphs import as_graph

ANSWERS = json.loads((places.DATA / "legacy.json").read_text("utf-8"))
SHARED = places.SHARED / "nnvm/mxnet_repo/save_000800_legacy_param_attr.json"


def read(graph: dict[str, Any]) -> tuple[Entry, ...]:
    nodes: list[Node] = []
    for each in graph["nodes"]:
        attrs = {**each.get("param", {}), **each.get("attr", {}), **each.get("attrs", {})}
        inputs = [Entry(nodes[entry[0]], *entry[1:]) for entry in each["inputs"]]
        found = schema.find(each["op"])
        count = found.num_outputs(attrs) if found else 1
        nodes.append(Node(each["op"], each["name"], attrs, inputs, count))
    return tuple(Entry(nodes[head[0]], *head[1:]) for head in graph["heads"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_upgrades_as_mxnet_does(name: str, version: int | None) -> None:
    answer = ANSWERS[name][str(version)]
    saved = legacy.UNKNOWN if version is None else version
    upgraded = as_graph(Symbol(legacy.upgrade(read(versioned(name, version)), saved)))
    if answer is None:
        # MXNet refuses the file for an unused attribute or a missing input: nothing changes.
        assert upgraded["nodes"] == as_graph(Symbol(read(GRAPHS[name])))["nodes"]
        return
    assert answer.pop("attrs") == {"mxnet_version": ["int", legacy.CURRENT]}
    assert upgraded == answer


def test_mxnet_refuses_bare_hidden_attributes_in_new_files_only() -> None:
    refused = {v for answers in ANSWERS.values() for v, a in answers.items() if a is None}
    assert refused == {str(legacy.CURRENT)}


def test_real_old_file() -> None:
    if not SHARED.exists():
        pytest.skip("the shared test data is not here")
    graph = json.loads(SHARED.read_text("utf-8"))
    nodes = {n["name"]: n for n in as_graph(Symbol(legacy.upgrade(read(graph), 800)))["nodes"]}
    assert nodes["data"]["attrs"] == {"__ctx_group__": "stage1", "__lr_mult__": "0.2"}
    weight = {"__ctx_group__": "stage1", "__wd_mult__": "0.3", "__lr_mult__": "1.2"}
    assert weight.items() <= nodes["fc1_weight"]["attrs"].items()
    assert "weight_lr_mult" not in nodes["fc1"]["attrs"]
    assert [entry[0] for entry in nodes["batchnorm0"]["inputs"]].count(0) == 0
    assert "batchnorm0_moving_var" in nodes


def test_input_that_is_missing_gets_its_attribute() -> None:
    data = Node("null", "data", num_outputs=1)
    attrs = {"num_hidden": "1", "weight_lr_mult": "3", "other_lr_mult": "4"}
    node = Node("FullyConnected", "fc", attrs, [Entry(data)], 1)
    (head,) = legacy.upgrade([Entry(node)], 800)
    weight, bias = (entry.node for entry in head.node.inputs[1:])
    assert weight.attrs == {"num_hidden": "1", "other_lr_mult": "4", "__lr_mult__": "3"}
    assert bias.attrs == {"num_hidden": "1", "other_lr_mult": "4"}
    assert head.node.attrs == {"num_hidden": "1", "other_lr_mult": "4"}
    assert node.attrs == attrs


def test_graph_without_old_things_is_shared() -> None:
    data = Node("null", "data", num_outputs=1)
    after = Node("relu", "after", {}, [Entry(data)], 1, control_deps=[data])
    old = Node("relu", "old", {"ctx_group": "g"}, [Entry(after)], 1)
    user = Node("relu", "user", {}, [Entry(after)], 1, control_deps=[old])
    same, changed = legacy.upgrade([Entry(after), Entry(user)], 10500)
    assert same.node is after
    assert changed.node is not user
    assert changed.node.control_deps[0].attrs == {"__ctx_group__": "g"}
    assert old.attrs == {"ctx_group": "g"}


def test_long_chain_is_no_deep_recursion() -> None:
    head = Entry(Node("null", "x", {"lr_mult": "1"}, num_outputs=1))
    for _ in range(100_000):
        head = Entry(Node("relu", "r", {}, [head], 1))
    (upgraded,) = legacy.upgrade([head], 800)
    depth = 0
    while upgraded.node.inputs:
        upgraded = upgraded.node.inputs[0]
        depth += 1
    assert depth == 100_000
    assert upgraded.node.attrs == {"__lr_mult__": "1"}
