"""Nodes and edges that a pass changed are consistent in the saved file of NNVM or TVM."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from nnvm_edits import Edit, entries
from nnvm_files import (
    BACKWARDS,
    NESTED,
    NNVM_CORE,
    OWN,
    TVM_EXECUTOR,
    WRITTEN,
)


def test_removed_variable_leaves_the_arguments(edit: Edit) -> None:
    graph = edit(TVM_EXECUTOR, ("bypass", {"node": "add"}))
    assert [node["name"] for node in graph["nodes"]] == ["A", "relu", "exp"]
    assert graph["arg_nodes"] == [0]
    assert entries(graph, "storage_id") == [0, 3, 2]


def test_attributes_of_variables_are_not_written_for_an_executor(edit: Edit) -> None:
    call = ("setNode", {"node": "A", "name": "data", "attrs": "__shape__=(2, 3)"})
    assert edit(TVM_EXECUTOR, call)["nodes"][0] == {"op": "null", "name": "data", "inputs": []}
    kept = edit(NNVM_CORE, ("setNode", {"node": "data", "attrs": "__shape__=(2, 3)"}))
    assert kept["nodes"][0]["attrs"] == {"__shape__": "(2, 3)"}


def test_number_of_inputs_that_a_call_declares_follows_its_edges(edit: Edit) -> None:
    declares_none = "flatten_data=0;num_outputs=1;func_name=f"
    graph = edit(
        TVM_EXECUTOR,
        ("rewire", {"node": "exp", "slot": 1, "from": "A"}),
        ("insertBehind", {"node": "add", "name": "f", "op": "tvm_op", "attrs": declares_none}),
    )
    declared = {n["name"]: n["attrs"]["num_inputs"] for n in graph["nodes"] if "attrs" in n}
    assert declared == {"add": "2", "f": "1", "relu": "1", "exp": "2"}


def test_renamed_and_retyped_nodes(edit: Edit) -> None:
    graph = edit(
        NNVM_CORE,
        ("setNode", {"node": "relu", "name": "other", "op": "tanh", "attrs": "a=1"}),
        ("setNode", {"node": "conv", "name": "first", "drop": "use_bias"}),
    )
    assert graph["nodes"][3] == {
        "op": "tanh",
        "name": "other",
        "attrs": {"a": "1"},
        "inputs": [[2, 0, 0]],
    }
    assert graph["nodes"][2]["name"] == "first"
    assert graph["nodes"][2]["attrs"] == {"channels": "2", "kernel_size": "[3, 3]"}
    assert graph["nodes"][5]["control_deps"] == [2]
    assert "node_row_ptr" not in graph
    assert "attrs" not in graph


def test_control_dependencies_follow_their_nodes(edit: Edit) -> None:
    options = {"node": "data", "name": "n", "op": "negative"}
    graph = edit(NNVM_CORE, ("insertBehind", options))
    assert [node["name"] for node in graph["nodes"]][:4] == ["data", "w", "n", "conv"]
    assert graph["nodes"][6]["control_deps"] == [3]


def test_copy_of_a_node_is_a_new_node(edit: Edit) -> None:
    graph = edit(TVM_EXECUTOR, ("duplicate", {"node": "exp"}))
    assert graph["nodes"][:5] == TVM_EXECUTOR["nodes"]
    assert graph["nodes"][5]["name"] == "exp_copy"
    assert graph["nodes"][5]["attrs"] == TVM_EXECUTOR["nodes"][4]["attrs"]
    assert graph["heads"] == [[4, 0, 0], [5, 0, 0]]


def test_nested_graph_changes_in_its_place(edit: Edit) -> None:
    options = {"holder": "loop", "node": "inner", "attrs": "k=w"}
    saved = edit(NESTED, ("setNested", options))
    expected = copy.deepcopy(NESTED)
    expected["nodes"][1]["subgraphs"][0]["nodes"][1]["attrs"]["k"] = "w"
    assert saved == expected


def test_file_that_goes_backwards_is_put_in_order_once_it_has_something_new(edit: Edit) -> None:
    renamed = edit(BACKWARDS, ("setNode", {"node": "middle", "name": "m"}))
    assert [node["name"] for node in renamed["nodes"]] == ["last", "m", "x"]
    grown = edit(BACKWARDS, ("insertBehind", {"node": "middle", "name": "new", "op": "exp"}))
    assert [node["name"] for node in grown["nodes"]] == ["x", "middle", "new", "last"]
    assert grown["nodes"][3]["inputs"] == [[2, 0]]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_node_can_be_left_out(name: str, edit: Edit) -> None:
    for node in WRITTEN[name]["nodes"]:
        if len(node["inputs"]) == 1:
            edit(WRITTEN[name], ("bypass", {"node": node["name"]}))


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_edits_of_genuine_files_stay_consistent(path: Path, edit: Edit) -> None:
    graph = json.loads(path.read_bytes())
    last = graph["nodes"][-1]["name"]
    changed = edit(
        path.read_bytes(),
        ("insertBehind", {"node": last, "name": "added", "op": "negative"}),
        ("setNode", {"node": last, "attrs": "__note__=x"}),
    )
    assert len(changed["nodes"]) == len(graph["nodes"]) + 1
    assert changed["node_row_ptr"] == [*graph["node_row_ptr"], graph["node_row_ptr"][-1] + 1]
    assert changed["attrs"] == graph["attrs"]
