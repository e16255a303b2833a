"""Damaged and doubtful files of NNVM and TVM: refused or reported with the place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import passlib
from nnvm_files import (
    LEGACY,
    NESTED,
    NNVM,
    NNVM_CORE,
    TVM_EXECUTOR,
    load,
    problems,
    saved,
    text_of,
)
from passlib.errors import FormatError, GraphError, UnsoundFileError


def changed(graph: dict[str, Any], *path: Any, value: Any = None, drop: bool = False) -> Any:
    """Copy a graph, with the value at a path replaced or dropped."""
    result = copy.deepcopy(graph)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    if drop:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


BROKEN = [
    (("nodes",), None, True, "nodes", FormatError),
    (("heads",), None, True, "heads", FormatError),
    (("arg_nodes",), None, True, "arg_nodes", FormatError),
    (("nodes",), {}, False, "nodes", FormatError),
    (("nodes", 0), 3, False, "nodes[0]", FormatError),
    (("nodes", 2, "op"), None, True, "nodes[2].op", FormatError),
    (("nodes", 2, "op"), "", False, "nodes[2].op", FormatError),
    (("nodes", 2, "name"), 5, False, "nodes[2].name", FormatError),
    (("nodes", 2, "inputs"), None, True, "nodes[2].inputs", FormatError),
    (("nodes", 2, "inputs"), "x", False, "nodes[2].inputs", FormatError),
    (("nodes", 2, "inputs", 1), [1], False, "nodes[2].inputs[1]", FormatError),
    (("nodes", 2, "inputs", 1), [1, 0, 0, 0], False, "nodes[2].inputs[1]", FormatError),
    (("nodes", 2, "inputs", 1), [1, 0, True], False, "nodes[2].inputs[1]", FormatError),
    (("nodes", 2, "inputs", 1), [1, 0, 2**31], False, "nodes[2].inputs[1]", FormatError),
    (("nodes", 2, "inputs", 1), [-1, 0, 0], False, "nodes[2].inputs[1]", FormatError),
    (("nodes", 2, "inputs", 1), [1.5, 0, 0], False, "nodes[2].inputs[1]", FormatError),
    (("nodes", 2, "inputs", 1), [9, 0, 0], False, "nodes[2].inputs[1]", UnsoundFileError),
    (("nodes", 2, "inputs", 1), [1, 1, 0], False, "nodes[2].inputs[1]", UnsoundFileError),
    (("nodes", 2, "inputs", 1), [2, 0, 0], False, "nodes[2]", UnsoundFileError),
    (("nodes", 2, "inputs", 1), [4, 0, 0], False, "nodes[2]", UnsoundFileError),
    (("nodes", 0, "inputs"), [[1, 0, 0]], False, "nodes[0].inputs", UnsoundFileError),
    (("nodes", 1, "name"), "A", False, "nodes[1].name", UnsoundFileError),
    (("nodes", 2, "attrs"), [], False, "nodes[2].attrs", FormatError),
    (("nodes", 2, "attrs", "hash"), 4, False, "nodes[2].attrs.hash", FormatError),
    (("nodes", 2, "control_deps"), 4, False, "nodes[2].control_deps", FormatError),
    (("nodes", 2, "control_deps"), [[0, 0, 0]], False, "nodes[2].control_deps[0]", FormatError),
    (("nodes", 2, "control_deps"), [9], False, "nodes[2].control_deps[0]", UnsoundFileError),
    (("nodes", 2, "control_deps"), [2], False, "nodes[2].control_deps[0]", UnsoundFileError),
    (("nodes", 2, "control_deps"), [4], False, "nodes[2]", UnsoundFileError),
    (("nodes", 2, "subgraphs"), {}, False, "nodes[2].subgraphs", FormatError),
    (("nodes", 2, "subgraphs"), [5], False, "nodes[2].subgraphs[0]", FormatError),
    (("nodes", 2, "subgraphs"), [{}], False, "nodes[2].subgraphs[0].nodes", FormatError),
    (("arg_nodes",), 0, False, "arg_nodes", FormatError),
    (("arg_nodes",), [0, "1"], False, "arg_nodes[1]", FormatError),
    (("arg_nodes",), [0, 1, 9], False, "arg_nodes[2]", UnsoundFileError),
    (("arg_nodes",), [0, 1, 2], False, "arg_nodes[2]", UnsoundFileError),
    (("heads",), [], False, "heads", UnsoundFileError),
    (("heads", 0), [5, 0, 0], False, "heads[0]", UnsoundFileError),
    (("heads", 0), 4, False, "heads[0]", FormatError),
    (("node_row_ptr",), [0, 1, 2, 3, 4], False, "node_row_ptr", FormatError),
    (("node_row_ptr",), "0", False, "node_row_ptr", FormatError),
    (("node_row_ptr",), [1, 2, 3, 4, 5, 6], False, "node_row_ptr[0]", FormatError),
    (("node_row_ptr",), [0, 1, 2, 1, 4, 5], False, "node_row_ptr[3]", FormatError),
    (("node_row_ptr",), [0, 1, 2, 2**40, 2**41, 2**42], False, "node_row_ptr[3]", FormatError),
    (("attrs",), [], False, "attrs", FormatError),
    (("attrs", "shape"), "x", False, "attrs.shape", FormatError),
    (("attrs", "shape"), ["list_int", [0] * 5], False, "attrs.shape[0]", FormatError),
    (("attrs", "shape", 1), [[1]] * 4, False, "attrs.shape[1]", FormatError),
    (("attrs", "shape", 1, 0), ["x"], False, "attrs.shape[1]", FormatError),
    (("attrs", "storage_id", 1), [0, 1, 2, 3, 4.5], False, "attrs.storage_id[1]", FormatError),
    (("attrs", "temp_storage_bytes", 1), -1, False, "attrs.temp_storage_bytes[1]", FormatError),
    (("attr",), {}, False, "attr", FormatError),
]


@pytest.mark.parametrize(("path", "value", "drop", "place", "error"), BROKEN)
def test_broken_file_is_refused_with_the_place(
    path: tuple[Any, ...],
    value: Any,
    drop: bool,
    place: str,
    error: type[FormatError],
    tmp_path: Path,
) -> None:
    graph = changed(TVM_EXECUTOR, *path, value=value, drop=drop)
    found = problems(graph, tmp_path)
    assert place in [problem.place for problem in found if problem.severity == "error"]
    with pytest.raises(error) as caught:
        load(tmp_path / "checked.json")
    assert "checked.json" in str(caught.value)
    if error is FormatError:
        assert not isinstance(caught.value, GraphError)


BEARABLE = [
    (("nodes", 2, "attrs", "func_name"), None, True, "error", "nodes[2].attrs"),
    (("nodes", 2, "attrs", "num_inputs"), "3", False, "error", "nodes[2].attrs.num_inputs"),
    (("nodes", 2, "attrs", "num_outputs"), "2", False, "error", "nodes[2].attrs.num_outputs"),
    (("nodes", 2, "attrs", "num_outputs"), "x", False, "error", "nodes[2].attrs.num_outputs"),
    (("attrs", "shape"), None, True, "error", "attrs.shape"),
    (("attrs",), None, True, "error", "attrs"),
    (("nodes", 2, "attrs", "func_name"), "", False, "error", "nodes[2].attrs.func_name"),
    (("nodes", 2, "attrs", "flatten_data"), "yes", False, "error", "nodes[2].attrs.flatten_data"),
    (("nodes", 2, "color"), "red", False, "error", "nodes[2].color"),
    (("nodes", 2, "param"), {}, False, "error", "nodes[2].param"),
    (("nodes", 2, "subgraphs"), [], False, "error", "nodes[2].subgraphs"),
    (("nodes", 2, "backward_source_id"), -1, False, "error", "nodes[2].backward_source_id"),
    (("color",), "red", False, "error", "color"),
    (("metadata",), {"a": 1}, False, None, ""),
    (("nodes", 0, "attrs"), {}, False, "error", "nodes[0].attrs"),
    (("arg_nodes",), [0], False, "warning", "arg_nodes"),
    (("arg_nodes",), [0, 1, 1], False, "warning", "arg_nodes[2]"),
    (("attrs", "new"), ["list_complex", 1], False, "error", "attrs.new[0]"),
    (("attrs", "new"), ["int", 1], False, "error", "attrs.new[0]"),
    (("attrs", "new"), ["list_int", [1]], False, None, ""),
    (("attrs", "new"), ["size_t", 2**64 - 1], False, None, ""),
    (("attrs", "storage_scope"), ["list_str", ["global"] * 5], False, None, ""),
    (("attrs", "storage_id", 1), [0, 1, 2, 2, 2], False, None, ""),
    (("attrs", "storage_id", 1), [0, 1, 2, 3, 0], False, "warning", "attrs.storage_id"),
    (("attrs", "dltype", 1, 2), "", False, "warning", "attrs.dltype[1][2]"),
    (("attrs", "dltype", 1, 2), "real", False, "warning", "attrs.dltype[1][2]"),
    (("attrs", "dltype", 1, 2), "float16x4", False, None, ""),
    (("attrs", "shape", 1, 2), [-1], False, "warning", "attrs.shape[1][2]"),
    (("nodes", 4, "attrs", "func_name"), "__nop", False, "warning", "attrs.storage_id"),
]


@pytest.mark.parametrize(("path", "value", "drop", "severity", "place"), BEARABLE)
def test_problem_that_does_not_keep_a_file_from_being_read(
    path: tuple[Any, ...],
    value: Any,
    drop: bool,
    severity: str | None,
    place: str,
    tmp_path: Path,
) -> None:
    graph = changed(TVM_EXECUTOR, *path, value=value, drop=drop)
    expected = [] if severity is None else [(severity, place)]
    assert [(p.severity, p.place) for p in problems(graph, tmp_path)] == expected
    model = load(tmp_path / "checked.json")
    assert saved(model, tmp_path) == (tmp_path / "checked.json").read_bytes()


GOES_BACK = {
    **TVM_EXECUTOR,
    "nodes": [
        *TVM_EXECUTOR["nodes"][:3],
        {**TVM_EXECUTOR["nodes"][4], "inputs": [[4, 0, 0]]},
        {**TVM_EXECUTOR["nodes"][3], "inputs": [[2, 0, 0]]},
    ],
    "heads": [[3, 0, 0]],
}
SPELLED_ATTR = {
    ("attr" if key == "attrs" else key): value
    for key, value in {**TVM_EXECUTOR["nodes"][4], "inputs": []}.items()
}
UNKNOWN_SOURCE = {**LEGACY["nodes"][3], "backward_source_id": 9}
ELSEWHERE = {
    "key": ({**NNVM_CORE, "color": "red"}, ["warning color"]),
    "metadata": ({**NNVM_CORE, "metadata": 1}, ["warning metadata"]),
    "type": ({**NNVM_CORE, "attrs": {"a": ["bool", True]}}, ["warning attrs.a[0]"]),
    "attr": ({**NNVM_CORE, "attr": {"a": ["int", -1]}}, []),
    "rows": ({**NNVM_CORE, "node_row_ptr": [0, 2, 3, 4, 5, 7, 8]}, ["error node_row_ptr[1]"]),
    "source": (
        {**LEGACY, "nodes": [*LEGACY["nodes"][:3], UNKNOWN_SOURCE]},
        ["error nodes[3].backward_source_id"],
    ),
    "executor attr": (
        {("attr" if key == "attrs" else key): value for key, value in TVM_EXECUTOR.items()},
        ["error attr", "error attrs"],
    ),
    "call attr": (
        {**TVM_EXECUTOR, "nodes": [*TVM_EXECUTOR["nodes"][:4], SPELLED_ATTR]},
        ["error nodes[4].attr.num_inputs"],
    ),
    "executor metadata": ({"metadata": 1, **TVM_EXECUTOR}, ["error metadata"] * 5),
    "executor order": (GOES_BACK, ["error nodes[3].inputs[0]"]),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_problem_of_one_kind_of_file(case: str, tmp_path: Path) -> None:
    graph, expected = ELSEWHERE[case]
    assert [f"{p.severity} {p.place}" for p in problems(graph, tmp_path)] == expected
    path = tmp_path / "checked.json"
    assert saved(load(path), tmp_path) == path.read_bytes()


@pytest.mark.parametrize("key", ["arg_nodes", "heads"])
def test_file_that_lacks_a_key_is_recognised_and_told_so(key: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(b" " * 100 + text_of(changed(NNVM_CORE, key, drop=True)))
    assert [(p.severity, p.place) for p in passlib.validate(path)] == [("error", key)]
    with pytest.raises(FormatError, match=f"{key}: is missing"):
        passlib.load(path)


def test_only_nodes_of_a_cycle_are_called_so(tmp_path: Path) -> None:
    graph = changed(TVM_EXECUTOR, "nodes", 2, "inputs", 1, value=[3, 0, 0])
    found = [p.place for p in problems(graph, tmp_path) if "cycle" in p.message]
    assert found == ["nodes[2]", "nodes[3]"]


def test_lists_that_differ_without_row_pointers(tmp_path: Path) -> None:
    graph = changed(TVM_EXECUTOR, "node_row_ptr", drop=True)
    graph = changed(graph, "attrs", "shape", 1, value=[[1]] * 4)
    places = [p.place for p in problems(graph, tmp_path)]
    assert places == ["node_row_ptr", "attrs.shape[1]"]
    with pytest.raises(FormatError, match="4 values for 5"):
        load(tmp_path / "checked.json")


def test_every_problem_is_reported(tmp_path: Path) -> None:
    graph = copy.deepcopy(TVM_EXECUTOR)
    graph["nodes"][2]["inputs"][0] = [7, 0, 0]
    graph["nodes"][3]["name"] = None
    graph["heads"] = [[8, 0, 0], [1]]
    assert [problem.place for problem in problems(graph, tmp_path)] == [
        "nodes[2].inputs[0]",
        "nodes[3].name",
        "heads[0]",
        "heads[1]",
    ]


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b'{"nodes": [}', b"\xff\xfe", b'{"nodes": 1, "nodes": 2}'],
)
def test_what_is_no_graph_at_all(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text)
    with pytest.raises(FormatError):
        load(path)
    assert [problem.severity for problem in NNVM.validate(path)][:1] == ["error"]


def test_deeply_nested_graphs_are_refused(tmp_path: Path) -> None:
    graph: dict[str, Any] = copy.deepcopy(NESTED)
    for _ in range(100):
        holder = {**NESTED["nodes"][1], "subgraphs": [graph]}
        graph = {**graph, "nodes": [graph["nodes"][0], holder], "node_row_ptr": [0, 1, 2]}
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(graph))
    with pytest.raises(FormatError, match=r"nest|deep"):
        load(path)
