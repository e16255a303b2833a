"""Passes that fail or return an invalid graph: one clear error each, and no side effect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import passlib
from passlib.errors import PassError, PassResultError
from passlib.symbol import Symbol

LoadPlugin = Callable[[str], passlib.library.Library]

BAD: dict[str, tuple[str, str]] = {
    "throwsException": ("bad_endings", "a weight is missing"),
    "throwsInt": ("bad_endings", "not a std::exception"),
    "failsSilently": ("bad_endings", "without saying why"),
    "failsWithMessages": ("bad_endings", r"cannot fuse anything(.|\n)*second message"),
    "hasNoBody": ("bad_endings", "has no body: call setBody"),
    "letsJsonErrorOut": ("bad_endings", r"',' where a value should stand \(line 2, column 3"),
    "returnsNonsense": ("bad_endings", "without saying why"),
    "forksAndReturns": ("bad_endings", "the child ended with 1"),
    "makesCycle": ("bad_edges", "cycle: 'resnetv10_pool1_fwd' -> 'resnetv10_dense0_fwd'"),
    "feedsItself": ("bad_edges", "cycle: 'resnetv10_dense0_fwd' -> 'resnetv10_dense0_fwd'"),
    "controlCycle": ("bad_edges", "cycle: 'resnetv10_pool1_fwd' -> 'resnetv10_dense0_fwd'"),
    "edgeToRemoved": ("bad_edges", "input 0 of node 'resnetv10_dense0_fwd' .*not in the graph"),
    "edgeToDeleted": ("bad_edges", "input 0 of node 'resnetv10_dense0_fwd' .*not in the graph"),
    "edgeToNull": ("bad_edges", "input 0 of node 'resnetv10_dense0_fwd' .*not in the graph"),
    "controlToDeleted": ("bad_edges", "control dependency of node .* not in the graph"),
    "outputTooLarge": ("bad_edges", "output 7 of node 'resnetv10_pool1_fwd'.*which has 1"),
    "outputLargest": ("bad_edges", "output 2147483647 of node|entry 2147483647 is not within"),
    "outputNegative": ("bad_edges", "output -1 of node|number of an entry -1 is not within"),
    "versionNegative": (
        "bad_edges",
        "input 0 of node .* has version -1|number of an entry -1 is not within",
    ),
    "headToRemoved": (
        "bad_edges",
        "output 0 of the graph .*not in the graph|an output of the graph .*not in it",
    ),
    "headNegative": ("bad_edges", "output -3 of node|number of an entry -3 is not within"),
    "headTooLarge": ("bad_edges", "output 5 of node 'resnetv10_dense0_fwd'.*which has 1"),
    "noHeads": ("bad_edges", "the graph has no outputs"),
    "noNodes": ("bad_edges", "the graph has no outputs"),
    "twoVariables": ("bad_nodes", "two variables are named 'data'"),
    "nullNode": ("bad_nodes", "node number 1 is null"),
    "listedTwice": ("bad_nodes", "node 'data' is listed twice"),
    "badSubgraph": ("bad_nodes", "output -1 of node 'x'|number of an entry -1 is not within"),
    "nestedTooDeep": ("bad_nodes", "nested more than 100 deep"),
    "emptyOperator": ("bad_nodes", "node 'resnetv10_dense0_fwd' has no operator"),
    "nameNotUtf8": ("bad_nodes", "not UTF-8"),
    "attributeNotUtf8": ("bad_nodes", "not UTF-8"),
    "givesNull": ("plain_c_results", "returned no graph"),
    "givesEmpty": ("plain_c_results", "the text ends"),
    "givesBroken": ("plain_c_results", r"',' where an object should stand \(line 1, column 12"),
    "givesTruncated": ("plain_c_results", "the text ends"),
    "givesBytes": ("plain_c_results", "not UTF-8"),
    "givesNumber": ("plain_c_results", "'4' where an object should stand"),
    "givesNoHeads": ("plain_c_results", "the graph has no outputs"),
    "givesFarEdge": ("plain_c_results", "input 0 of node 'far' refers to node 9"),
}


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("name", BAD)
def test_bad_pass(load_plugin: LoadPlugin, resnet: Symbol, name: str) -> None:
    plugin, words = BAD[name]
    library = load_plugin(plugin)
    load_plugin("good")
    before = resnet.tojson()
    texts = []
    for _ in range(3):
        with pytest.raises(PassError, match=words) as caught:
            resnet.optimize_for(name)
        texts.append(str(caught.value))
    assert len(set(texts)) == 1, "a later error repeats what earlier ones said"
    assert repr(name) in texts[0]
    assert repr(library.path) in texts[0]
    assert (
        isinstance(caught.value, PassResultError)
        or caught.value.messages
        or ("without saying why" in texts[0])
    )
    assert resnet.tojson() == before
    assert resnet.optimize_for("identity").tojson() == before


def test_every_bad_pass_is_in_the_table(load_plugin: LoadPlugin) -> None:
    names = {n for lib in {lib for lib, _ in BAD.values()} for n in load_plugin(lib).passes}
    others = {"sharedSubgraph", "nodeOfTwoGraphs", "nullSubgraph", "ownSubgraph"}
    others.add("foreignVariables")  # which is mended
    assert names - set(BAD) == others


@pytest.mark.usefixtures("handover")
def test_the_list_of_variables_follows_the_nodes(load_plugin: LoadPlugin) -> None:
    """Run in a child process, since a host that follows the pointers crashes."""
    library = load_plugin("bad_nodes")
    code = (
        "import sys, passlib\n"
        "passlib.library.load(sys.argv[1], verbose=False)\n"
        "x, y = passlib.sym.var('x'), passlib.sym.var('y')\n"
        "result = passlib.sym.broadcast_add(x, y).optimize_for('foreignVariables')\n"
        "print(result.list_arguments(), result.infer_shape(x=(2,), y=(2,))[1])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, library.path],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "['x', 'y'] [(2,)]\n"


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("name", ["nullSubgraph", "ownSubgraph"])
def test_nested_graph_that_cannot_be(load_plugin: LoadPlugin, name: str) -> None:
    """Run in a child process, since a host that follows the pointer crashes."""
    library = load_plugin("bad_nodes")
    code = (
        "import sys, passlib\n"
        "passlib.library.load(sys.argv[1])\n"
        "try:\n"
        "    passlib.sym.relu(passlib.sym.var('x'), name='holder').optimize_for(sys.argv[2])\n"
        "except passlib.PassError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, library.path, name],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert repr(name) in run.stdout
    assert "subgraph of node 'holder'" in run.stdout


def test_subgraph_of_two_nodes(load_plugin: LoadPlugin, resnet: Symbol, handover: str) -> None:
    load_plugin("bad_nodes")
    if handover != "json":
        with pytest.raises(PassError, match="'holder1' also belongs to another node"):
            resnet.optimize_for("sharedSubgraph")
        return
    # Nodes of a text cannot share a subgraph, so each has its own copy.
    result = resnet.optimize_for("sharedSubgraph")
    assert result.tojson().count('"subgraphs"') == 2


@pytest.mark.usefixtures("handover")
def test_node_of_two_graphs(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("bad_nodes")
    # Graphs are described, and each has its own copy.
    assert '"subgraphs"' in resnet.optimize_for("nodeOfTwoGraphs").tojson()


def test_messages_are_those_of_the_call(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("bad_endings")
    for what in ("apples", "pears"):
        with pytest.raises(PassError) as caught:
            resnet.optimize_for("failsWithMessages", what=what)
        first, second = caught.value.messages
        assert f"bad_endings.cc[38]: cannot fuse {what}" in first
        assert "second message" in second
    assert "apples" not in str(caught.value)
