"""Graph attributes with a value for each output follow the nodes that a pass changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import passlib
from nnvm_edits import CALL, Edit, entries
from nnvm_files import (
    NNVM_CORE,
    SHARED,
    TVM_EXECUTOR,
    text_of,
)
from passlib.errors import GraphError, UnsupportedError


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
    # exp now reads the output of add, and may write to its buffer, which holds nothing else then.
    assert ids["exp"] == 2


def test_entries_that_came_to_overlap_are_parted(edit: Edit) -> None:
    """The sum is used again at the end, so the last call must not overwrite it."""
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


def test_new_variable_has_the_type_that_the_pass_says(edit: Edit) -> None:
    options = {"node": "relu", "name": "C", "attrs": "__shape__=(1, 3);__dtype__=float16"}
    graph = edit(TVM_EXECUTOR, ("addVariable", options))
    assert [node["name"] for node in graph["nodes"]] == ["A", "B", "add", "C", "relu", "exp"]
    # TVM's reader takes the attributes of any node for those of a call.
    assert graph["nodes"][3] == {"op": "null", "name": "C", "inputs": []}
    assert graph["nodes"][4]["attrs"]["num_inputs"] == "2"
    assert graph["arg_nodes"] == [0, 1, 3]
    assert entries(graph, "shape")[3] == [1, 3]
    assert entries(graph, "dltype")[3] == "float16"
    assert entries(graph, "device_index")[3] == 2


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


def test_arrays_that_a_pass_made_have_their_type_in_the_lists(edit: Edit, tmp_path: Path) -> None:
    options = {"node": "relu", "name": "C", "elements": 3}
    graph = edit(TVM_EXECUTOR, ("addVariable", options))
    assert entries(graph, "shape")[3] == [3]
    assert entries(graph, "dltype")[3] == "float32"
    model = passlib.model.load(tmp_path / "saved.json", dialect="nnvm")
    np.testing.assert_array_equal(model.args["C"], np.full(3, 2.0, np.float32))


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
