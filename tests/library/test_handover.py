"""The ways a graph is handed to a pass: equal results, and arrays that cannot be believed."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import passlib
from passlib.errors import PassError, PassResultError
from passlib.symbol import Symbol

LoadPlugin = Callable[[str], passlib.library.Library]

TOO_MANY = "more than a graph can have"
BAD = {
    "flatNullNodes": "the array 'nodes' has 2 items, but is null",
    "flatNullEdges": "the array 'edges' has 2 items, but is null",
    "flatNullPairs": "the array 'pairs' has 2 items, but is null",
    "flatNullGraphs": "the array 'graphs' has 1 items, but is null",
    "flatWildNodes": f"the array 'nodes' has {2**60} items, {TOO_MANY}",
    "flatWildEdges": f"the array 'edges' has {2**64 - 1} items, {TOO_MANY}",
    "flatWildPairs": f"the array 'pairs' has {2**63 - 1} items, {TOO_MANY}",
    "flatWildGraphs": f"the array 'graphs' has {2**60} items, {TOO_MANY}",
    "flatNoGraphs": "the array 'graphs' has 0 items left where 1 are announced",
    "flatOddNodes": "the array 'nodes' has a misaligned address",
    "flatVersion": "version 9 and",
    "flatHead": "version 2 and 8 bytes at its head",
    "flatWords": "the nodes have 8 packed words, but 7 are announced",
    "flatNodesBeyond": f"graph number 0: .*2 items left where {2**64 - 1}",
    "flatNodesLeft": "'nodes' has 1 items that belong to nothing",
    "flatEdgesLeft": "'edges' has 1 items that belong to nothing",
    "flatDepsLeft": "'control_deps' has 1 items that belong to nothing",
    "flatPairsLeft": "'pairs' has 1 items that belong to nothing",
    "flatGraphsLeft": "'graphs' has 1 items that belong to nothing",
    "flatInputsBeyond": f"graph number 0: .*'edges' has 2 items left where {2**32 - 1}",
    "flatDepsBeyond": "graph number 0: .*'control_deps' has 0 items left where 1",
    "flatExtraBeyond": "node number 1: .*'pairs' has 2 items left where 3",
    "flatHeadsBeyond": f"'edges' has 1 items left where {2**60}",
    "flatAttrsBeyond": "'pairs' has 0 items left where 1",
    "flatSubgraphsBeyond": "node number 1: 1 subgraphs are more than follow",
    "flatNested": "nested more than 100 deep",
    "flatFarInput": "node number 1: input 0 refers to node 7, but there are 2 nodes",
    "flatFarHead": f"output 0 refers to node {2**32 - 1}",
    "flatFarDep": "node number 1: control dependency 0 refers to node 2",
    "flatSelf": "cycle: 'r' -> 'r'",
    "flatOutput": "output -5 of node 'r'",
    "flatEntryVersion": "input 0 of node 'r' has version -1",
    "flatDeclared": "outputs_declared is 2",
    "flatNumOutputs": "node 'r' claims to have -2 outputs",
    "flatNullName": "node number 1: its name has 3 bytes, but is null",
    "flatNullOp": "node number 1: its operator has 4 bytes, but is null",
    "flatWildName": f"node number 1: its name has {2**60} bytes, with the texts before it more",
    "flatNoOp": "node 'r' has no operator",
    "flatBytes": "the name of node number 1 is not UTF-8",
    "flatTwin": "two variables are named 'x'",
    "flatPackedNull": "its packed attributes are null",
    "flatPackedShort": "fewer than two words",
    "flatPackedLong": "9 words do not hold them",
    "flatPackedNone": "0 attributes",
    "flatPackedMany": "65 attributes",
    "flatPackedKey": "attribute number 0 goes beyond the texts",
    "flatPackedText": "attribute number 1 goes beyond the texts",
    "flatPackedRest": "the texts are longer than keys and values",
    "flatPackedOrder": "the keys are not sorted",
    "flatPackedFilling": "the bytes behind the texts are not 0",
    "flatPackedOdd": "its packed attributes are misaligned",
    "flatPackedBytes": "attributes of node 'r' are not UTF-8",
    "flatPackedBoth": "some of its attributes are packed, others are not",
    "flatAttributeTwice": "attribute 'a' occurs twice",
    "flatMemberTwice": "the key 'note' occurs twice",
    "flatMemberBroken": "the value of 'note' is not JSON: the text ends",
    "flatMemberEmpty": "the value of 'note' is not JSON",
    "flatMemberRest": "something follows the end of the JSON text",
    "flatMemberNull": "the value of a member has 6 bytes, but is null",
    "flatMemberBytes": "the key of a member is not UTF-8",
    "flatNothing": "succeeded, but returned no graph",
}
"""By pass: what is said of its result."""
GOOD = {"flatPlain", "flatEcho"}


@pytest.fixture
def small() -> Symbol:
    """The graph that the library's results are damaged forms of, without attributes."""
    return passlib.sym.relu(passlib.sym.var("x"), name="r")


@pytest.mark.parametrize("name", BAD)
def test_bad_result(load_plugin: LoadPlugin, small: Symbol, name: str) -> None:
    library = load_plugin("flat_views")
    assert library.handover == "flat"
    count = ctypes.CDLL(library.path).freedResults
    before, freed = small.tojson(), count()
    with pytest.raises(PassResultError, match=BAD[name]) as caught:
        small.optimize_for(name)
    assert f"pass {name!r} of library {library.path!r}" in str(caught.value)
    assert count() == freed + (name != "flatNothing")
    assert small.tojson() == before
    assert small.optimize_for("flatEcho").tojson() == before


def test_every_bad_result_is_in_the_table(load_plugin: LoadPlugin) -> None:
    assert set(load_plugin("flat_views").passes) == set(BAD) | GOOD


def test_what_was_shown_as_the_result(load_plugin: LoadPlugin) -> None:
    """Texts of the result are those of the graph that it replaces."""
    load_plugin("flat_views")
    node = {"op": "null", "name": "x", "inputs": [], "attrs": {"a": "1"}, "note": [1], "more": {}}
    graph = {"nodes": [node], "arg_nodes": [0], "node_row_ptr": [0, 1], "heads": [[0, 0, 0]]}
    symbol = passlib.sym.load_json(json.dumps({**graph, "own": {"b": 2}}))
    assert symbol.optimize_for("flatEcho").tojson() == symbol.tojson()


def test_another_graph_than_was_shown(load_plugin: LoadPlugin, small: Symbol) -> None:
    load_plugin("flat_views")
    node = json.loads(passlib.sym.exp(small).optimize_for("flatPlain").tojson())["nodes"][1]
    assert node["name"] == "r"
    assert node["attrs"] == {"a": "1", "bb": "2"}
    assert (node["note"], node["more"]) == ([1, 2], "text")


@pytest.mark.parametrize("name", ["flat_views_newer", "flat_views_no_free"])
def test_what_is_not_understood_gets_json(
    plugin: Callable[[str], Path], load_plugin: LoadPlugin, name: str, small: Symbol
) -> None:
    library = load_plugin(name)
    assert library.handover == "json"
    (only,) = library.passes
    assert small.optimize_for(only).tojson() == small.tojson()


def test_the_environment_names_the_way(
    load_plugin: LoadPlugin, resnet: Symbol, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_plugin("good").handover == "flat"
    monkeypatch.setenv("PASSLIB_HANDOVER", "fast")
    with pytest.raises(ValueError, match="'fast', which is none of 'flat', 'json'"):
        resnet.optimize_for("identity")
    monkeypatch.setenv("PASSLIB_FORCE_JSON", "1")
    assert resnet.optimize_for("identity").tojson() == resnet.tojson()


TEXTS = st.text(max_size=20)
ATTRIBUTES = st.one_of(
    st.dictionaries(TEXTS, TEXTS, max_size=5),
    st.integers(60, 70).map(lambda n: {f"key{i}": str(i) for i in range(n)}),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Draw a graph in NNVM's JSON, each node after those it needs."""
    nodes: list[dict[str, Any]] = []
    row_ptr = [0]
    for i in range(draw(st.integers(1, 6))):
        entry = st.tuples(st.integers(0, max(i - 1, 0)), st.just(0), st.integers(0, 3))
        node: dict[str, Any] = {
            "op": draw(st.sampled_from(["null", "relu", "odd one"]) if i else st.just("null"))
        }
        node["name"] = f"{i}{draw(TEXTS)}"
        attributes = draw(ATTRIBUTES)
        if attributes:
            node["attrs"] = attributes
        node["inputs"] = [] if node["op"] == "null" else draw(st.lists(entry, max_size=4))
        deps = draw(st.lists(st.integers(0, i - 1), max_size=2)) if i else []
        if deps:
            node["control_deps"] = deps
        if draw(st.booleans()):
            node.update(draw(st.dictionaries(TEXTS.map("_".__add__), VALUES, max_size=2)))
        if depth and draw(st.integers(0, 4)) == 0:
            node["subgraphs"] = draw(st.lists(graphs(depth - 1), min_size=1, max_size=2))
        nodes.append(node)
        row_ptr.append(row_ptr[-1] + draw(st.integers(1, 3)))
    variables = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    head = st.tuples(st.integers(0, len(nodes) - 1), st.just(0), st.integers(0, 1))
    return {
        "nodes": nodes,
        "arg_nodes": variables,
        "node_row_ptr": row_ptr,
        "heads": draw(st.lists(head, min_size=1, max_size=3)),
        **draw(st.dictionaries(TEXTS.map("_".__add__), VALUES, max_size=2)),
    }


@pytest.mark.parametrize(
    "name",
    [
        "identity",
        "renameOperators",
        "reverseNodes",
        "moveAttributes",
        "changeAttributes",
        "nest",
        "nestInHead",
    ],
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(graphs())
def test_results_are_equal(
    load_plugin: LoadPlugin, monkeypatch: pytest.MonkeyPatch, name: str, graph: dict[str, Any]
) -> None:
    load_plugin("good")
    load_plugin("edits")
    symbol = passlib.sym.load_json(json.dumps(graph))
    results = []
    for way in ("flat", "json"):
        monkeypatch.setenv("PASSLIB_HANDOVER", way)
        try:
            results.append(symbol.optimize_for(name).tojson())
        except PassError as error:
            results.append(type(error).__name__)
    assert results[1] == results[0]
