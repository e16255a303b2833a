"""Saved files of NNVM and TVM keep the spelling of the file that was read."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import passlib
from nnvm_edits import CALL, Edit
from nnvm_files import (
    LEGACY,
    NNVM_CORE,
    TVM_EXECUTOR,
    text_of,
)


def test_one_attribute_changes_and_nothing_else_is_printed_anew(edit: Edit, tmp_path: Path) -> None:
    text = (
        text_of(TVM_EXECUTOR, 3)
        .replace(b'"0a1b"', b'"0a\\u0031b"')
        .replace(b'"size_t"', b'  "size_t"')
    )
    edit(text, ("setNode", {"node": "exp", "attrs": "func_name=other"}))
    saved = (tmp_path / "saved.json").read_bytes()
    before, after = text.split(b"\n"), saved.split(b"\n")
    start = next(i for i, line in enumerate(before) if line.strip() == b'"name": "exp",')
    assert after[:start] == before[:start]
    rest = next(i for i, line in enumerate(before) if line.strip().startswith(b'"arg_nodes"'))
    assert after[rest - len(before) :] == before[rest:]
    assert b"fused_exp" not in saved
    assert b'"func_name": "other"' in saved


NNVM_TEXT = b"""{
  "nodes": [
    {
      "op": "null", 
      "name": "x", 
      "inputs": []
    }, 
    {
      "op": "tvm_op", 
      "name": "f", 
      "attrs": {
        "flatten_data": "0", 
        "func_name": "f", 
        "num_inputs": "1", 
        "num_outputs": "1"
      }, 
      "inputs": [[0, 0, 0]]
    }
  ], 
  "arg_nodes": [0], 
  "node_row_ptr": [0, 1, 2], 
  "heads": [[1, 0, 0]], 
  "attrs": {
    "storage_id": ["list_int", [0, 1]], 
    "shape": ["list_shape", [
        [2, 3], 
        [2, 3]]], 
    "dltype": ["list_str", [
        "float32", 
        "float32"]]
  }
}"""  # noqa: W291
"""The layout of NNVM's own writer."""


def test_what_is_printed_anew_is_laid_out_as_nnvm_does(edit: Edit, tmp_path: Path) -> None:
    options = {"node": "f", "name": "g", "op": "tvm_op", "attrs": CALL + "__copy"}
    edit(NNVM_TEXT, ("insertBehind", options))
    edit((tmp_path / "saved.json").read_bytes(), ("bypass", {"node": "g"}))
    assert (tmp_path / "saved.json").read_bytes() == NNVM_TEXT


def test_legacy_manner_is_kept_for_new_nodes_and_attributes(edit: Edit) -> None:
    graph = edit(
        LEGACY,
        ("insertBehind", {"node": "fc", "name": "n", "op": "Activation", "attrs": "act_type=tanh"}),
        ("setNode", {"node": "fc", "attrs": "num_hidden=5;lr_mult=2;flatten=1;__x__=y"}),
        ("setNode", {"node": "act", "attrs": "__x__=y"}),
        ("addVariable", {"node": "fc", "name": "v", "attrs": "lr_mult=3"}),
    )
    nodes = {node["name"]: node for node in graph["nodes"]}
    assert nodes["n"] == {
        "op": "Activation",
        "param": {"act_type": "tanh"},
        "name": "n",
        "inputs": [[3, 0]],
        "backward_source_id": -1,
    }
    assert list(nodes["n"]) == ["op", "param", "name", "inputs", "backward_source_id"]
    assert nodes["fc"]["param"] == {"no_bias": "True", "num_hidden": "5", "flatten": "1"}
    assert nodes["fc"]["attr"] == {"ctx_group": "stage1", "lr_mult": "2", "__x__": "y"}
    assert nodes["fc"]["inputs"] == [[0, 0], [1, 0], [2, 0]]
    assert nodes["act"]["attr"] == {"__x__": "y"}
    assert nodes["v"]["attr"] == {"lr_mult": "3"}
    assert nodes["v"]["param"] == {}


def test_file_of_early_mxnet_without_attributes_of_users(edit: Edit) -> None:
    """MXNet up to 0.8 reads ``param`` and ``attr``; a gradient has the number of its node."""
    graph = copy.deepcopy(LEGACY)
    for node in graph["nodes"]:
        node.pop("attr", None)
    graph["nodes"][3]["backward_source_id"] = 2
    saved = edit(
        graph,
        ("insertBehind", {"node": "data", "name": "n", "op": "Activation", "attrs": "__x__=y"}),
    )
    assert list(saved["nodes"][2].items()) == [
        ("op", "Activation"),
        ("param", {}),
        ("name", "n"),
        ("inputs", [[0, 0]]),
        ("backward_source_id", -1),
        ("attr", {"__x__": "y"}),
    ]
    assert saved["nodes"][4]["backward_source_id"] == 3
    gone = edit(graph, ("bypass", {"node": "fc"}))
    assert [node["backward_source_id"] for node in gone["nodes"]] == [-1, -1]


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("attrs", ["op", "name", "attrs", "inputs"]),
        ("control_deps", ["op", "name", "attrs", "inputs", "control_deps"]),
    ],
)
def test_first_attributes_of_a_file_stand_where_nnvm_has_them(
    key: str, order: list[str], edit: Edit
) -> None:
    last = {
        "op": "relu",
        "name": "r",
        "inputs": [[0, 0, 0]],
        **({} if key == "attrs" else {key: [0]}),
    }
    graph = {
        "nodes": [{"op": "null", "name": "x", "inputs": []}, last],
        "arg_nodes": [0],
        "heads": [[1, 0, 0]],
    }
    saved = edit(graph, ("setNode", {"node": "r", "attrs": "k=v"}))
    assert list(saved["nodes"][1]) == order


def test_param_does_not_overwrite_what_users_said(edit: Edit, tmp_path: Path) -> None:
    graph = copy.deepcopy(LEGACY)
    graph["nodes"][2]["attr"]["num_hidden"] = "5"
    saved = edit(graph, ("setNode", {"node": "fc", "attrs": "no_bias=False"}))
    assert saved["nodes"][2]["param"] == {"no_bias": "False", "num_hidden": "4"}
    assert saved["nodes"][2]["attr"] == graph["nodes"][2]["attr"]
    model = passlib.model.load(tmp_path / "saved.json", dialect="nnvm")
    assert {node.name: node for node in model.symbol.nodes()}["fc"].attrs["num_hidden"] == "5"
    saved = edit(graph, ("setNode", {"node": "fc", "attrs": "num_hidden=6"}))
    assert saved["nodes"][2]["param"]["num_hidden"] == "4"
    assert saved["nodes"][2]["attr"]["num_hidden"] == "6"


def test_attr_and_attrs_stay_as_each_node_has_them(edit: Edit) -> None:
    graph = copy.deepcopy(NNVM_CORE)
    graph["nodes"][2]["attr"] = graph["nodes"][2].pop("attrs")
    saved = edit(
        graph,
        ("setNode", {"node": "conv", "attrs": "groups=1"}),
        ("setNode", {"node": "halves", "attrs": "axis=1"}),
    )
    assert saved["nodes"][2]["attr"]["groups"] == "1"
    assert "attrs" not in saved["nodes"][2]
    assert saved["nodes"][4]["attrs"] == {"axis": "1", "indices_or_sections": "2"}


def test_attribute_of_the_file_that_is_named_like_ours_stays(edit: Edit) -> None:
    graph = copy.deepcopy(NNVM_CORE)
    graph["nodes"][2]["attrs"]["__id__"] = "theirs"
    assert edit(graph) == graph
    graph["nodes"][2]["attrs"]["groups"] = "1"
    assert edit(graph, ("setNode", {"node": "conv", "attrs": "groups=1"})) == graph


def test_graph_attributes_under_the_key_attr(edit: Edit) -> None:
    graph = {**NNVM_CORE, "attr": {"version": ["int", 3]}}
    saved = edit(
        graph, ("setGraph", {"key": "attrs", "json": '{"version": ["int", 4], "a": ["str", "b"]}'})
    )
    assert saved["attr"] == {"version": ["int", 4], "a": ["str", "b"]}
    assert "attrs" not in saved


@pytest.mark.parametrize("key", ["attrs", "metadata"])
def test_keys_of_the_graph_can_be_dropped_and_added(key: str, edit: Edit) -> None:
    graph = {**NNVM_CORE, "attrs": {"version": ["int", 3]}, "metadata": {"a": 1}}
    saved = edit(graph, ("setGraph", {"key": key}), ("setGraph", {"key": "n", "json": "[1.50]"}))
    assert key not in saved
    assert saved["n"] == [1.5]
