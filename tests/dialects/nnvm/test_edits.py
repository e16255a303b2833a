"""What a pass did to a graph of NNVM or TVM is consistent in the file that is saved."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from nnvm_files import (
    BACKWARDS,
    LEGACY,
    NESTED,
    NNVM_CORE,
    OWN,
    SHARED,
    TVM_EXECUTOR,
    WRITTEN,
    text_of,
)
from passlib import dialects
from passlib.errors import GraphError, UnsupportedError
from plugin_build import Builder, library

CALL = "flatten_data=0;num_inputs=1;num_outputs=1;func_name="
NNVM = dialects.find("nnvm")

Edit = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def passes() -> Iterator[None]:
    builder = Builder({"nnvm": library("nnvm.cc")}, ".so")
    passlib.library.load(builder("nnvm"), verbose=False)
    yield
    builder.close()


@pytest.fixture
def edit(passes: None, tmp_path: Path, handover: str) -> Edit:
    """Save a graph after some passes; the file has no errors, and is read again."""

    def run(graph: Any, *calls: tuple[str, dict[str, object]]) -> dict[str, Any]:
        path = tmp_path / "graph.json"
        path.write_bytes(graph if isinstance(graph, bytes) else text_of(graph))
        model = passlib.model.load(path, dialect="nnvm")
        for name, options in calls:
            model = model.optimize_for(name, **options)
        target = tmp_path / "saved.json"
        model.save(target)
        assert [p for p in NNVM.validate(target) if p.severity == "error"] == []
        again = passlib.model.load(target, dialect="nnvm")
        again.save(path)
        assert path.read_bytes() == target.read_bytes()
        saved: dict[str, Any] = json.loads(target.read_bytes())
        return saved

    return run


def entries(graph: dict[str, Any], name: str) -> list[Any]:
    values: list[Any] = graph["attrs"][name][1]
    return values


def test_new_call_stands_before_its_users_with_values_for_its_output(edit: Edit) -> None:
    options = {"node": "add", "name": "new", "op": "tvm_op", "attrs": CALL + "__copy"}
    graph = edit(TVM_EXECUTOR, ("insertBehind", options))
    assert [node["name"] for node in graph["nodes"]] == ["A", "B", "add", "new", "relu", "exp"]
    assert graph["nodes"][3] == {
        "op": "tvm_op",
        "name": "new",
        "attrs": {
            "flatten_data": "0",
            "func_name": "__copy",
            "num_inputs": "1",
            "num_outputs": "1",
        },
        "inputs": [[2, 0, 0]],
    }
    assert graph["nodes"][4]["inputs"] == [[3, 0, 0]]
    assert graph["heads"] == [[5, 0, 0]]
    assert graph["arg_nodes"] == [0, 1]
    assert graph["node_row_ptr"] == [0, 1, 2, 3, 4, 5, 6]
    assert entries(graph, "shape") == [[2, 3]] * 6
    assert entries(graph, "dltype") == ["float32"] * 6
    assert entries(graph, "device_index") == [2, 2, 2, 2, 2, 1]
    assert entries(graph, "storage_id") == [0, 1, 2, 4, 3, 2]
    assert graph["attrs"]["temp_storage_bytes"] == ["size_t", 48]
    assert list(graph) == list(TVM_EXECUTOR)


def test_alias_has_the_buffer_of_its_input_and_keeps_it_alive(edit: Edit) -> None:
    options = {"node": "add", "name": "alias", "op": "tvm_op", "attrs": CALL + "__nop"}
    late = {"node": "exp", "slot": 0, "from": "alias"}
    graph = edit(TVM_EXECUTOR, ("insertBehind", options), ("rewire", late))
    ids = dict(zip((n["name"] for n in graph["nodes"]), entries(graph, "storage_id"), strict=True))
    assert ids["alias"] == ids["add"] == 2
    # exp now reads what add wrote, and may write into it: nothing else is in that buffer then.
    assert ids["exp"] == 2


def test_entries_that_came_to_overlap_are_parted(edit: Edit) -> None:
    """The sum is used once more at the end, so the last call must not write over it."""
    last = {"node": "exp", "name": "extra", "op": "tvm_op", "attrs": CALL + "f"}
    graph = edit(
        TVM_EXECUTOR,
        ("insertBehind", last),
        ("rewire", {"node": "extra", "slot": 1, "from": "add"}),
        ("setNode", {"node": "extra", "attrs": "num_inputs=2"}),
    )
    ids = entries(graph, "storage_id")
    assert ids[:4] == [0, 1, 2, 3]
    assert len(set(ids)) == 6


def test_removed_call_takes_its_values_along(edit: Edit) -> None:
    graph = edit(TVM_EXECUTOR, ("bypass", {"node": "relu"}))
    assert [node["name"] for node in graph["nodes"]] == ["A", "B", "add", "exp"]
    assert graph["nodes"][3]["inputs"] == [[2, 0, 0]]
    assert graph["node_row_ptr"] == [0, 1, 2, 3, 4]
    assert entries(graph, "storage_id") == [0, 1, 2, 2]
    assert entries(graph, "device_index") == [2, 2, 2, 1]


def test_removed_variable_leaves_the_arguments(edit: Edit) -> None:
    graph = edit(TVM_EXECUTOR, ("bypass", {"node": "add"}))
    assert [node["name"] for node in graph["nodes"]] == ["A", "relu", "exp"]
    assert graph["arg_nodes"] == [0]
    assert entries(graph, "storage_id") == [0, 3, 2]


def test_new_variable_has_the_type_that_the_pass_says(edit: Edit) -> None:
    options = {"node": "relu", "name": "C", "attrs": "__shape__=(1, 3);__dtype__=float16"}
    graph = edit(TVM_EXECUTOR, ("addVariable", options))
    assert [node["name"] for node in graph["nodes"]] == ["A", "B", "add", "C", "relu", "exp"]
    # TVM's reader takes any attributes of a node for those of a call.
    assert graph["nodes"][3] == {"op": "null", "name": "C", "inputs": []}
    assert graph["nodes"][4]["attrs"]["num_inputs"] == "2"
    assert graph["arg_nodes"] == [0, 1, 3]
    assert entries(graph, "shape")[3] == [1, 3]
    assert entries(graph, "dltype")[3] == "float16"
    assert entries(graph, "device_index")[3] == 2


def test_attributes_of_variables_are_not_written_for_an_executor(edit: Edit) -> None:
    call = ("setNode", {"node": "A", "name": "data", "attrs": "__shape__=(2, 3)"})
    assert edit(TVM_EXECUTOR, call)["nodes"][0] == {"op": "null", "name": "data", "inputs": []}
    kept = edit(NNVM_CORE, ("setNode", {"node": "data", "attrs": "__shape__=(2, 3)"}))
    assert kept["nodes"][0]["attrs"] == {"__shape__": "(2, 3)"}


def test_unknown_types_are_written_as_unknown_and_said(
    edit: Edit, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"node": "add", "name": "f", "op": "tvm_op", "attrs": CALL + "unknown"}
    graph = edit(TVM_EXECUTOR, ("insertBehind", options))
    assert entries(graph, "shape")[3] == []
    assert entries(graph, "dltype")[3] == ""
    assert "shape of the outputs of f" in caplog.text


def test_several_outputs_are_counted_by_the_attributes(edit: Edit) -> None:
    attrs = (CALL + "f").replace("num_outputs=1", "num_outputs=3")
    options = {"node": "add", "name": "three", "op": "tvm_op", "attrs": attrs}
    graph = edit(TVM_EXECUTOR, ("insertBehind", options))
    assert graph["node_row_ptr"] == [0, 1, 2, 3, 6, 7, 8]
    assert len(set(entries(graph, "storage_id"))) == 7
    assert len(entries(graph, "shape")) == 8


def test_number_of_inputs_that_a_call_declares_follows_its_edges(edit: Edit) -> None:
    declares_none = "flatten_data=0;num_outputs=1;func_name=f"
    graph = edit(
        TVM_EXECUTOR,
        ("rewire", {"node": "exp", "slot": 1, "from": "A"}),
        ("insertBehind", {"node": "add", "name": "f", "op": "tvm_op", "attrs": declares_none}),
    )
    declared = {n["name"]: n["attrs"]["num_inputs"] for n in graph["nodes"] if "attrs" in n}
    assert declared == {"add": "2", "f": "1", "relu": "1", "exp": "2"}


def test_types_of_known_operators_are_inferred(edit: Edit) -> None:
    graph = copy.deepcopy(NNVM_CORE)
    graph["node_row_ptr"] = [0, 1, 2, 3, 4, 6, 7]
    shapes = [[1, 3, 5, 5], [2, 3, 3, 3], [1, 2, 3, 3], [1, 2, 3, 3], [1, 1, 3, 3], [1, 1, 3, 3]]
    graph["attrs"] = {
        "shape": ["list_shape", [*shapes, [1, 1, 3, 3]]],
        "dtype": ["list_int", [2] * 7],
    }
    options = {"node": "conv", "name": "p", "op": "max_pool2d", "attrs": "pool_size=(2, 2)"}
    saved = edit(graph, ("insertBehind", options))
    assert saved["nodes"][3]["name"] == "p"
    assert entries(saved, "shape")[3] == [1, 2, 2, 2]
    assert entries(saved, "dtype")[3] == 2


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
"""As NNVM's own writer lays it out."""


def test_what_is_printed_anew_is_laid_out_as_nnvm_does(edit: Edit, tmp_path: Path) -> None:
    options = {"node": "f", "name": "g", "op": "tvm_op", "attrs": CALL + "__copy"}
    edit(NNVM_TEXT, ("insertBehind", options))
    edit((tmp_path / "saved.json").read_bytes(), ("bypass", {"node": "g"}))
    assert (tmp_path / "saved.json").read_bytes() == NNVM_TEXT


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
    """MXNet up to 0.8 knows ``param`` and ``attr``; the gradient of a node goes by its number."""
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


@pytest.mark.parametrize(
    ("op", "attrs", "change", "before", "after"),
    [
        ("SliceChannel", {"num_outputs": "3"}, "num_outputs=2", 3, 2),
        ("SliceChannel", {"num_outputs": "3"}, "num_outputs=5", 3, 5),
        ("split", {"indices_or_sections": "3"}, "indices_or_sections=(1,)", 3, 2),
        ("topk", {"ret_typ": "both"}, "ret_typ=mask", 2, 1),
        ("topk", {"ret_typ": "both"}, "k=3", 2, 2),
        ("Pooling", {"kernel": "(2, 2)"}, "stride=(2, 2)", 2, 2),
    ],
)
def test_row_pointers_follow_attributes_that_count_outputs(
    op: str, attrs: dict[str, str], change: str, before: int, after: int, edit: Edit
) -> None:
    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": op, "name": "several", "attrs": attrs, "inputs": [[0, 0, 0]]},
        ],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1, 1 + before],
        "heads": [[1, 0, 0]],
        "attrs": {"storage_id": ["list_int", list(range(1 + before))]},
    }
    saved = edit(graph, ("setNode", {"node": "several", "attrs": change}))
    assert saved["node_row_ptr"] == [0, 1, 1 + after]
    assert entries(saved, "storage_id") == list(range(1 + after))


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


def test_lists_that_a_pass_wrote_in_the_new_length_stay(edit: Edit) -> None:
    lists = copy.deepcopy(TVM_EXECUTOR["attrs"])
    lists["storage_id"] = ["list_int", [9, 8, 7, 6, 5, 4]]
    lists["shape"] = ["list_shape", [[1], [2], [3], [4], [5]]]
    options = {"node": "add", "name": "f", "op": "tvm_op", "attrs": CALL + "__copy"}
    saved = edit(
        TVM_EXECUTOR,
        ("insertBehind", options),
        ("setGraph", {"key": "attrs", "json": json.dumps(lists)}),
    )
    assert entries(saved, "storage_id") == [9, 8, 7, 6, 5, 4]
    assert entries(saved, "shape") == [[1], [2], [3], [3], [4], [5]]


def test_buffers_that_a_pass_chose_are_its_own_affair(edit: Edit) -> None:
    lists = {**TVM_EXECUTOR["attrs"], "storage_id": ["list_int", [0] * 6]}
    options = {"node": "add", "name": "f", "op": "tvm_op", "attrs": CALL + "__copy"}
    change = ("setGraph", {"key": "attrs", "json": json.dumps(lists)})
    saved = edit(TVM_EXECUTOR, ("insertBehind", options), change)
    assert entries(saved, "storage_id") == [0] * 6


def test_list_of_a_wrong_length_is_refused(edit: Edit) -> None:
    lists = {**TVM_EXECUTOR["attrs"], "storage_id": ["list_int", [9, 8]]}
    with pytest.raises(GraphError, match=r"storage_id.*2 values.*5 outputs"):
        edit(TVM_EXECUTOR, ("setGraph", {"key": "attrs", "json": json.dumps(lists)}))


def test_unknown_list_follows_removals_and_refuses_to_guess(edit: Edit, tmp_path: Path) -> None:
    graph = copy.deepcopy(TVM_EXECUTOR)
    graph["attrs"]["priority"] = ["list_int", [5, 6, 7, 8, 9]]
    assert entries(edit(graph, ("bypass", {"node": "relu"})), "priority") == [5, 6, 7, 9]
    options = {"node": "add", "name": "f", "op": "tvm_op", "attrs": CALL + "__copy"}
    (tmp_path / "saved.json").write_text("untouched")
    with pytest.raises(UnsupportedError, match=r"'f'.*priority"):
        edit(graph, ("insertBehind", options))
    assert (tmp_path / "saved.json").read_text() == "untouched"


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


def test_arrays_that_a_pass_made_have_their_type_in_the_lists(edit: Edit, tmp_path: Path) -> None:
    options = {"node": "relu", "name": "C", "elements": 3}
    graph = edit(TVM_EXECUTOR, ("addVariable", options))
    assert entries(graph, "shape")[3] == [3]
    assert entries(graph, "dltype")[3] == "float32"
    model = passlib.model.load(tmp_path / "saved.json", dialect="nnvm")
    np.testing.assert_array_equal(model.args["C"], np.full(3, 2.0, np.float32))


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


def test_genuine_executor_file(edit: Edit) -> None:
    path = SHARED / "tvm" / "dlr_resnet18_model.json"
    if not path.exists():
        pytest.skip("the shared test data are not here")
    graph = json.loads(path.read_bytes())
    name = graph["nodes"][50]["name"]
    user = next(n for n in graph["nodes"] if [50, 0, 0] in n["inputs"])
    options = {"node": name, "name": "moved", "op": "tvm_op", "attrs": CALL + "__copy"}
    changed = edit(path.read_bytes(), ("insertBehind", options))
    count = graph["node_row_ptr"][-1]
    assert all(len(entries(changed, key)) == count + 1 for key in ("shape", "dltype", "storage_id"))
    assert any(node["name"] == user["name"] for node in changed["nodes"])
    back = edit(text_of(changed), ("bypass", {"node": "moved"}))
    assert back["nodes"] == graph["nodes"]
    assert back["attrs"]["shape"] == graph["attrs"]["shape"]
