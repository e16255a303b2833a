"""Which nodes a partitioner puts into one subgraph."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passlib
from partition_graphs import (
    CHAIN,
    graph_text,
    members,
    random_text,
    run,
    whole_again,
)

pytestmark = pytest.mark.usefixtures("partitioners", "handover")

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
