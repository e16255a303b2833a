"""Partitioners that fail, review nothing, or support the whole graph."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import passlib
from partition_graphs import (
    CHAIN,
    graph_text,
    members,
    run,
    whole_again,
)
from passlib.errors import PassError, PassResultError
from passlib.symbol import Symbol

pytestmark = pytest.mark.usefixtures("partitioners", "handover")

LoadPlugin = Callable[[str], passlib.library.Library]

FAILURES = [
    ("badSupported", "fail", "failed in supportedOps.*\n.*supports nothing today"),
    ("badSupported", "fail silently", "without saying why"),
    ("badSupported", "throw", "no idea"),
    ("badSupported", "throw a number", "not a std::exception"),
    ("badSupported", "shrink", "ids, one for each node"),
    ("badSupported", "nonsense", "the number -7 for node 'e4'"),
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


def nested(depth: int) -> str:
    """Return a graph whose last node has graphs in it, as many levels as given."""
    inner: dict[str, object] = {}
    for level in range(depth + 1):
        node = {"op": "exp", "name": f"e{level}", "inputs": [[0, 0, 0]]}
        if level > 0:
            node["subgraphs"] = [inner]
        variable = {"op": "null", "name": f"a{level}", "inputs": []}
        inner = {"nodes": [variable, node], "arg_nodes": [0], "heads": [[1, 0, 0]]}
    return json.dumps({**inner, "attrs": {"mxnet_version": ["int", 10901]}})


def test_subgraphs_in_subgraphs_are_bounded() -> None:
    assert members(run(nested(99), ops="exp", skip_infer=True)) == {"_op0": ["e99"]}
    with pytest.raises(PassResultError, match=r"'partitionSupported'.*nested more than 100 deep"):
        run(nested(100), ops="exp", skip_infer=True)
