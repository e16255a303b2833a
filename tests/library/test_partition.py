"""Partitioners: which nodes a subgraph gets, what stands in their place, and what a review says."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passlib
from partition_graphs import CHAIN, graph_text, inlined, nodes_of, random_text
from passlib.errors import LoadError, PassError, PasslibError
from passlib.symbol import Symbol

LoadPlugin = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True, scope="module")
def partitioners(plugin: Callable[[str], Path]) -> passlib.library.Library:
    return passlib.library.load(plugin("partitioners"), verbose=False)


def members(text: str) -> dict[str, list[str]]:
    """Give the operators in each subgraph, by the name of its node."""
    return {
        name: [inner["name"] for inner in node["subgraphs"][0]["nodes"] if inner["op"] != "null"]
        for name, node in nodes_of(text).items()
        if "subgraphs" in node
    }


def whole_again(text: str) -> str:
    """Undo the partitioning of a graph."""
    return passlib.sym.load_json(inlined(text)).tojson()


def run(text: str, backend: str = "partitionSupported", **options: object) -> str:
    return passlib.sym.load_json(text).optimize_for(backend, **options).tojson()


# What a library holds, and how it is found.


def test_a_library_holds_both_kinds(partitioners: passlib.library.Library) -> None:
    assert partitioners.passes == ("besidePartitioners",)
    assert partitioners.partitioners[0] == "partitionSupported"
    symbol = passlib.sym.load_json(CHAIN)
    assert symbol.optimize_for("besidePartitioners").tojson() == symbol.tojson()
    with pytest.raises(PasslibError) as caught:
        symbol.optimize_for("partitionSuported")
    message = str(caught.value)
    assert "did you mean 'partitionSupported'?" in message
    assert "besidePartitioners" in message.partition("partitioners: ")[0]
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
    result = symbol.optimize_for("partitionReviewed", args, aux, ops="BatchNorm", show=1, attr="k")
    # All parameters are visible, through the names that the subgraph has for them.
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
    # What an operator in the subgraph writes to is still an auxiliary state.
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
    # Eleven uses of "a", and one of "a1", whose first would be called like the last of "a".
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


# Which nodes.

SIDES = [  # two of group 0 with a node of group 1 between, and the reverse
    ("null", "x", []),
    ("exp", "p", [0], {"__group__": "0"}),
    ("exp", "q", [0], {"__group__": "1"}),
    ("exp", "p1", [1], {"__group__": "0"}),
    ("exp", "q2", [2], {"__group__": "1"}),
    ("elemwise_add", "q1", [2, 3], {"__group__": "1"}),
    ("elemwise_add", "p2", [1, 4], {"__group__": "0"}),
]

CASES = {
    "a diamond around what is not supported": (
        [
            ("null", "x", []),
            ("exp", "top", [0]),
            ("tanh", "left", [1]),
            ("exp", "right", [1]),
            ("elemwise_add", "end", [2, 3]),
        ],
        [4],
        "exp,elemwise_add",
        [["top", "right"], ["end"]],
    ),
    "a long way round": (
        [
            ("null", "x", []),
            ("exp", "top", [0]),
            ("tanh", "t1", [1]),
            ("tanh", "t2", [2]),
            ("elemwise_add", "end", [1, 3]),
            ("exp", "after", [4]),
        ],
        [5],
        "exp,elemwise_add",
        [["top"], ["end", "after"]],
    ),
    "numbers apart": (
        [
            ("null", "x", []),
            ("exp", "a", [0], {"__group__": "0"}),
            ("exp", "b", [1], {"__group__": "0"}),
            ("exp", "c", [2], {"__group__": "1"}),
            ("exp", "d", [3], {"__group__": "-1"}),
        ],
        [4],
        "",
        [["a", "b"], ["c", "d"]],
    ),
    "what may be anywhere takes in only its like": (
        [("null", "x", []), ("exp", "a", [0]), ("exp", "b", [1], {"__group__": "0"})],
        [2],
        "exp",
        [["a"], ["b"]],
    ),
    "two groups around each other": (SIDES, [5, 6], "", [["p", "p1"], ["q", "q1", "q2"], ["p2"]]),
    "nothing supported": ([("null", "x", []), ("exp", "a", [0])], [1], "log", []),
    "variables stay outside": (
        [("null", "x", []), ("null", "y", []), ("elemwise_add", "a", [0, 1])],
        [2, 0],
        "null,elemwise_add",
        [["a"]],
    ),
    "through a shared input": (
        [
            ("null", "x", []),
            ("exp", "top", [0]),
            ("exp", "left", [1]),
            ("exp", "right", [1]),
        ],
        [2, 3, 2],
        "exp",
        [["top", "left", "right"]],
    ),
}


@pytest.mark.parametrize("backend", ["partitionSupported", "partitionSelected"])
@pytest.mark.parametrize("case", CASES)
def test_groups(case: str, backend: str) -> None:
    nodes, heads, ops, groups = CASES[case]
    if backend == "partitionSelected" and any(len(node) > 3 for node in nodes):
        backend = "partitionReviewed"  # the selector does not look at numbers
    text = graph_text(nodes, list(heads))
    result = run(text, backend, ops=ops)
    assert [sorted(group) for group in members(result).values()] == [sorted(g) for g in groups]
    assert whole_again(result) == passlib.sym.load_json(text).tojson()


@settings(max_examples=150, deadline=None)
@given(
    rng=st.randoms(use_true_random=False),
    size=st.integers(1, 40),
    groups=st.sampled_from([[-1], [0], [0, 1], [-1, 0, 1, 2]]),
    supported=st.floats(0.2, 1),
    merged=st.booleans(),
)
def test_random_graphs(
    rng: random.Random, size: int, groups: list[int], supported: float, merged: bool
) -> None:
    text = random_text(rng, size, groups, supported)
    symbol = passlib.sym.load_json(text)
    for backend in ("partitionSupported", "partitionTwice"):
        options = {"ops": "exp", "more_ops": "_partition,tanh,add_n", "dedup_subgraph": merged}
        result = symbol.optimize_for(backend, **options)
        assert whole_again(result.tojson()) == symbol.tojson()


# Selectors.


def test_selector_is_asked_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    nodes, heads, ops, _ = CASES["a diamond around what is not supported"]
    run(graph_text(nodes, list(heads)), "partitionSelected", ops=ops, show=1)
    assert capsys.readouterr().out.splitlines() == [
        "select top",
        *["output left", "output right", "output end"],
        *["input left", "reset"],
        *["output left", "output right", "filter top right"],
        "select left",
        "select end",
        *["input left", "filter end"],
        "destroyed",
    ]


@pytest.mark.parametrize(
    ("drop", "groups"),
    [("e1", [["l1"], ["e2"]]), ("l1", [["e1"], ["e2"]]), ("e1,l1", [["e2"]]), ("e1,l1,e2", [])],
)
def test_filter(drop: str, groups: list[list[str]]) -> None:
    text = run(CHAIN, "partitionSelected", ops="exp,log", drop=drop)
    assert list(members(text).values()) == groups


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
    options = {"ops": "log", "more_ops": "exp,_partition", "show": 1, "attr": "second"}
    text = symbol.optimize_for("partitionTwice", args, {}, **options).tojson()
    first, second = (line for line in capsys.readouterr().out.splitlines() if line[0] == "{")
    assert "_partition" not in first
    shown = {node["name"]: node for node in json.loads(second)["nodes"]}
    # What the first strategy made is part of the graph, with shapes.
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


# What else a graph may have.


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
    # A way that comes back by control dependencies alone is a way, too.
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


# Failures.

FAILURES = [
    ("badSupported", "fail", "failed in supportedOps.*\n.*supports nothing today"),
    ("badSupported", "fail silently", "without saying why"),
    ("badSupported", "throw", "no idea"),
    ("badSupported", "throw a number", "not a std::exception"),
    ("badSupported", "shrink", "ids, one for each node"),
    ("badSupported", "nonsense", "gave node 'e4' the number -7"),
    ("badSelected", "fail", "failed in createSelector"),
    ("badSelected", "throw", "no selector"),
    ("badSelected", "make none", "made no selector"),
    ("badSelected", "throw in Select", "failed in Select: .*cannot select"),
    ("badSelected", "throw in SelectInput", "failed in SelectInput: .*not a std::exception"),
    ("badSelected", "throw in SelectOutput", "failed in SelectOutput: .*cannot select"),
    ("badSelected", "throw in Filter", "failed in Filter: .*cannot filter"),
    ("badSelected", "keep one twice", "Filter kept a node twice"),
    ("badSelected", "keep a stranger", "Filter kept node number 0, which is not among"),
    ("badSelected", "keep nonsense", "Filter kept node number -12345"),
    ("badSelected", "keep too many", "Filter kept 4 of 3 nodes"),
    ("badSelected", "keep the ends", "would be on a cycle"),
    ("badReviewed", "review fails", "failed in reviewSubgraph.*\n.*does not like number 1"),
    ("badReviewed", "review throws", "cannot look"),
    ("badReviewed", "review text", "not sound.*_op0.*not UTF-8"),
    ("badWithoutFunctions", "all", "neither setSupportedOps nor setCreateSelector"),
    ("badWithoutStrategies", "all", "has no strategies"),
]


@pytest.mark.parametrize(("backend", "how", "words"), FAILURES)
def test_failures_change_nothing(
    load_plugin: LoadPlugin, backend: str, how: str, words: str
) -> None:
    library = load_plugin("bad_partitioners")
    nodes = [("null", "a", []), *[("exp", f"e{i}", [i]) for i in range(3)], ("tanh", "t", [3])]
    symbol = passlib.sym.load_json(graph_text([*nodes, ("exp", "e4", [4])], [5]))
    args, aux = {"a": np.ones((2, 3), np.float32)}, {}
    before = symbol.tojson()
    for _ in range(2):
        with pytest.raises(PassError, match=f"(?s){words}") as caught:
            symbol.optimize_for(backend, args, aux, how=how)
        message = str(caught.value)
        assert repr(backend) in message
        assert library.path in message
        assert all(message.count(said) == 1 for said in caught.value.messages)
    assert symbol.tojson() == before
    assert (list(args), aux) == (["a"], {})
    assert args["a"].tolist() == np.ones((2, 3)).tolist()


def test_a_review_that_says_nothing_rejects(load_plugin: LoadPlugin) -> None:
    load_plugin("bad_partitioners")
    assert members(run(CHAIN, "badReviewed", how="review forgets")) == {}
    assert len(members(run(CHAIN, "badReviewed", how="review"))) == 2


def test_everything_supported(resnet: Symbol) -> None:
    ops = ",".join(resnet.graph.operators())
    whole = resnet.optimize_for("partitionSupported", ops=ops)
    assert whole.list_arguments() == resnet.list_arguments()
    assert whole.list_auxiliary_states() == resnet.list_auxiliary_states()
    text = whole.tojson()
    assert len(members(text)) == 1
    assert whole_again(text) == resnet.tojson()
