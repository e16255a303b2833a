"""Partitioners: the node that stands for a subgraph, reviews, strategies, equal inputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import passlib
from partition_graphs import (
    CHAIN,
    graph_text,
    members,
    nodes_of,
    run,
    whole_again,
)
from passlib.errors import LoadError, PasslibError

pytestmark = pytest.mark.usefixtures("partitioners", "handover")


def test_a_library_holds_both_kinds(partitioners: passlib.library.Library) -> None:
    assert partitioners.passes == ("besidePartitioners",)
    assert partitioners.partitioners[0] == "partitionSupported"
    symbol = passlib.sym.load_json(CHAIN)
    assert symbol.optimize_for("besidePartitioners").tojson() == symbol.tojson()
    with pytest.raises(PasslibError) as caught:
        symbol.optimize_for("partitionSuported")
    message = str(caught.value)
    assert "did you mean 'partitionSupported'?" in message
    # Where many libraries are loaded, the message does not list all passes.
    assert "besidePartitioners" in passlib.library.passes()
    assert "besidePartitioners" not in message.partition("partitioners: ")[2]
    assert "partitionTwice" in message.partition("partitioners: ")[2]


def test_a_name_is_taken_once(partitioners: passlib.library.Library, tmp_path: Path) -> None:
    other = shutil.copy(partitioners.path, tmp_path / "other.so")
    with pytest.raises(LoadError, match=r"'[a-zA-Z]+' is already registered by"):
        passlib.library.load(other, verbose=False)
    assert passlib.library.find_backend("partitionSupported").library is partitioners


# The node that stands for a subgraph.


def test_subgraph_node() -> None:
    text = run(CHAIN, ops="exp,log")
    assert members(text) == {"_op0": ["e1", "l1"], "_op1": ["e2"]}
    graph = json.loads(text)
    names = [node["name"] for node in graph["nodes"]]
    node = nodes_of(text)["_op0"]
    assert node["op"] == "_partition"
    assert "attrs" not in node
    assert node["inputs"] == [[names.index("sum"), 0, 0]]
    # One output for each use, in the order of the walk over the graph.
    assert node["subgraphs"][0]["heads"] == [[2, 0, 0], [1, 0, 0]]
    assert graph["heads"] == [[names.index("_op1"), 0, 0], [names.index("_op0"), 1, 0]]
    variable = node["subgraphs"][0]["nodes"][0]
    assert variable == {
        "op": "null",
        "name": "sum_output0",
        "attrs": {"isArg": "False"},
        "inputs": [],
    }
    assert whole_again(text) == passlib.sym.load_json(CHAIN).tojson()


def test_inputs_say_whose_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["gamma", "beta", "moving_mean", "moving_var"]
    text = graph_text(
        [
            ("null", "x", []),
            *[("null", f"bn_{name}", []) for name in names],
            ("BatchNorm", "bn", [0, 1, 2, (3, 0, 1), (4, 0, 1)]),
            ("exp", "e", [5]),
        ],
        [6],
    )
    args = {f"bn_{name}": np.full(2, i, np.float32) for i, name in enumerate(names[:2])}
    aux = {f"bn_{name}": np.full(2, i + 2, np.float32) for i, name in enumerate(names[2:])}
    args["x"] = np.full((3, 2), 9, np.float32)
    symbol = passlib.sym.load_json(text)
    options = {"ops": "BatchNorm", "show": 1, "attrs": "__attr__=k"}
    result = symbol.optimize_for("partitionReviewed", args, aux, **options)
    # All parameters are visible under their names in the subgraph.
    line = "review 0: x0=9 bn_gamma0=0 bn_beta0=1 bn_moving_mean0=2 bn_moving_var0=3"
    assert line in capsys.readouterr().out.splitlines()
    node = nodes_of(result.tojson())["_op0"]
    assert node["attrs"] == {"__attr__": "k"}
    inner = node["subgraphs"][0]["nodes"]
    assert [each["attrs"] for each in inner if each["op"] == "null"] == [
        {"argName": name, "isArg": "True", "isAux": str(is_aux)}
        for name, is_aux in zip(
            ["x", *(f"bn_{name}" for name in names)], [False] * 3 + [True] * 2, strict=True
        )
    ]
    # Mutated inputs of an operator in the subgraph are still auxiliary states.
    assert [entry[2] for entry in node["inputs"]] == [0, 0, 0, 1, 1]
    assert result.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert set(args) == {"x", "bn_gamma", "bn_beta"}
    assert set(aux) == {"bn_moving_mean", "bn_moving_var"}


def test_shapes_and_types() -> None:
    symbol = passlib.sym.load_json(CHAIN)
    args = {name: np.ones((3, 2), np.float32) for name in "ab"}
    options = {"ops": "exp,log", "keep_inferred": True}
    result = symbol.optimize_for("partitionSupported", args, {}, **options)
    node = nodes_of(result.tojson())["_op0"]
    assert node["attrs"] == {"__ext_dtype__": "[0,0]", "__ext_shape__": "[[3,2],[3,2]]"}
    variable = node["subgraphs"][0]["nodes"][0]
    assert variable["attrs"]["__ext_shape__"] == "[[3,2]]"
    plain = symbol.optimize_for("partitionSupported", args, {}, ops="exp,log").tojson()
    assert "__ext_" not in plain
    assert plain == run(CHAIN, ops="exp,log")


def test_attributes_from_a_file_may_be_anything() -> None:
    strange = {"__ext_shape__": "[[", "__ext_dtype__": "7]"}
    text = graph_text([("null", "a", [], strange), ("exp", "e", [0], strange)], [1])
    node = nodes_of(run(text, ops="exp", keep_inferred=True))["_op0"]
    assert node["attrs"] == {"__ext_shape__": "[None]", "__ext_dtype__": "[-1]"}


def test_names_are_unique() -> None:
    # Eleven uses of "a", and one of "a1", whose first would get the name of the last use of "a".
    text = graph_text(
        [
            ("null", "a", []),
            ("null", "a1", []),
            ("add_n", "many", [0] * 11 + [1], {"num_args": "12"}),
            ("exp", "_op1", [2]),
            ("add_n", "twice", [3, 3], {"num_args": "2"}),
        ],
        [4],
    )
    once = run(text, "partitionTwice", ops="add_n", more_ops="exp")
    assert members(once) == {"_op0": ["many"], "_op3": ["_op1"], "_op2": ["twice"]}
    inner = nodes_of(once)["_op0"]["subgraphs"][0]["nodes"]
    names = [node["name"] for node in inner if node["op"] == "null"]
    assert names == [*(f"a{i}" for i in range(11)), "a11"]


def test_second_run_takes_other_names() -> None:
    once = passlib.sym.load_json(CHAIN).optimize_for("partitionSupported", ops="log")
    again = once.optimize_for("partitionSupported", ops="exp")
    assert members(again.tojson()) == {"_op0": ["l1"], "_op1": ["e1"], "_op2": ["e2"]}
    whole = again.optimize_for("partitionSupported", ops="_partition,tanh")
    assert list(members(whole.tojson())) == ["_op3"]


# Reviews, strategies, equal inputs.


def test_rejected_subgraphs_leave_no_trace() -> None:
    symbol = passlib.sym.load_json(CHAIN)
    rejected = symbol.optimize_for("partitionReviewed", ops="exp,log", reject="0,1")
    assert rejected.tojson() == symbol.tojson()
    text = run(CHAIN, "partitionReviewed", ops="exp,log", reject="0")
    # Numbers are those of all subgraphs, as in MXNet.
    assert members(text) == {"_op1": ["e2"]}
    assert nodes_of(text)["e1"]["inputs"] == nodes_of(symbol.tojson())["e1"]["inputs"]


def test_strategies_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    args = {name: np.ones((3, 2), np.float32) for name in "ab"}
    symbol = passlib.sym.load_json(CHAIN)
    options = {"ops": "log", "more_ops": "exp,_partition", "show": 1, "attrs": "__attr__=second"}
    text = symbol.optimize_for("partitionTwice", args, {}, **options).tojson()
    first, second = (line for line in capsys.readouterr().out.splitlines() if line[0] == "{")
    assert "_partition" not in first
    shown = {node["name"]: node for node in json.loads(second)["nodes"]}
    # Nodes made by the first strategy are part of the graph, with shapes.
    assert shown["_op0"]["op"] == "_partition"
    assert shown["_op0"]["attrs"] == {"__ext_dtype__": "[0]", "__ext_shape__": "[[3,2]]"}
    assert members(text) == {"_op1": ["e1", "_op0"], "_op2": ["e2"]}
    assert nodes_of(text)["_op1"]["op"] == "_other_partition"
    assert nodes_of(text)["_op1"]["attrs"] == {"__attr__": "second"}
    assert whole_again(text) == symbol.tojson()


@pytest.mark.parametrize(("value", "inputs", "outputs"), [(True, 2, 2), ("true", 6, 5), (0, 6, 5)])
def test_equal_inputs_and_outputs(value: object, inputs: int, outputs: int) -> None:
    text = graph_text(
        [
            ("null", "a", []),
            ("null", "b", []),
            ("elemwise_add", "x", [0, 1]),
            ("elemwise_mul", "y", [2, 0]),
            ("elemwise_add", "z", [3, 1]),
            ("elemwise_mul", "u", [4, 0]),
            ("elemwise_add", "v", [5, 1]),
            ("tanh", "t", [3]),
        ],
        [7, 6, 3, 3, 6],
    )
    whole = run(text, ops="elemwise_add,elemwise_mul", dedup_subgraph=value)
    assert members(whole) == {"_op0": ["x", "y", "z", "u", "v"]}
    node = nodes_of(whole)["_op0"]
    assert len(node["inputs"]) == inputs
    assert [each["op"] for each in node["subgraphs"][0]["nodes"]].count("null") == inputs
    assert len(node["subgraphs"][0]["heads"]) == outputs
    assert whole_again(whole) == passlib.sym.load_json(text).tojson()


# Control dependencies and hidden outputs.


def test_control_dependencies() -> None:
    graph = json.loads(
        graph_text(
            [
                ("null", "a", []),
                ("tanh", "t", [0]),
                ("exp", "e1", [0]),
                ("exp", "e2", [2]),
                ("tanh", "last", [0]),
            ],
            [3, 4],
        )
    )
    nodes = graph["nodes"]
    nodes[3]["control_deps"] = [1, 2]
    nodes[4]["control_deps"] = [2, 3]
    whole = nodes_of(run(json.dumps(graph), ops="exp"))
    names = list(whole)
    assert [names[i] for i in whole["_op0"]["control_deps"]] == ["t"]
    assert [names[i] for i in whole["last"]["control_deps"]] == ["_op0"]
    inner = {node["name"]: node for node in whole["_op0"]["subgraphs"][0]["nodes"]}
    assert inner["e2"]["control_deps"] == [1]
    # A path that returns by control dependencies alone counts too.
    nodes[1]["control_deps"] = []
    nodes[1]["inputs"] = [[0, 0, 0]]
    nodes[1], nodes[2] = nodes[2], nodes[1]
    nodes[2]["control_deps"] = [1]
    nodes[3] = {**nodes[3], "inputs": [[1, 0, 0]], "control_deps": [2]}
    nodes[4]["control_deps"] = []
    assert members(run(json.dumps(graph), ops="exp")) == {"_op0": ["e1"], "_op1": ["e2"]}


def test_hidden_outputs() -> None:
    names = ["x", "gamma", "beta", "mean", "var"]
    nodes = [("null", name, []) for name in names]
    bn = ("BatchNorm", "bn", [0, 1, 2, 3, 4], {"output_mean_var": "True"})
    text = graph_text([*nodes, bn, ("exp", "e", [(5, 1)]), ("exp", "f", [(5, 0)])], [6, 7])
    node = nodes_of(run(text, ops="BatchNorm"))["_op0"]
    assert node["subgraphs"][0]["heads"] == [[5, 1, 0], [5, 0, 0]]
    inner = nodes_of(run(text, ops="exp"))["_op0"]["subgraphs"][0]["nodes"]
    assert inner[0]["name"] == "bn_mean0"
