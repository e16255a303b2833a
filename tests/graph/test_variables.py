"""Names of variables that a graph has, lacks, or has lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from passlib import _core

Names = st.lists(st.integers(0, 40).map("v{}".format), unique=True, max_size=30)


def _graph(names: list[str], attribute: str = "") -> _core.Graph:
    attrs = {"kind": attribute} if attribute else {}
    nodes = [("null", name, attrs, [], 1, [], []) for name in names]
    return _core.Graph.build(nodes, [(i, 0, 0) for i in range(len(names))])


@given(before=Names, after=Names)
def test_missing_ones_are_those_that_the_other_graph_lacks(
    before: list[str], after: list[str]
) -> None:
    missing = _graph(before).missing_variables(_graph(after))
    assert missing == [name for name in before if name not in after]


@given(names=Names, removed=st.sets(st.integers(0, 29)), added=Names)
def test_missing_ones_where_most_stay(
    names: list[str], removed: set[int], added: list[str]
) -> None:
    new = [f"new_{name}" for name in added]
    left = [name for i, name in enumerate(names) if i not in removed]
    half = len(left) // 2
    after = _graph([*left[:half], *new, *left[half:]])
    gone = [name for i, name in enumerate(names) if i in removed]
    assert _graph(names).missing_variables(after) == gone


def test_prefix_of_an_attribute() -> None:
    nodes = [
        ("null", "a", {"kind": "input.0"}, [], 1, [], []),
        ("null", "b", {"kind": "initializer.0"}, [], 1, [], []),
        ("null", "c", {}, [], 1, [], []),
        ("Relu", "d", {"kind": "input.1"}, [(0, 0, 0)], 1, [], []),
    ]
    graph = _core.Graph.build(nodes, [(3, 0, 0), (1, 0, 0), (2, 0, 0)])
    assert graph.variables_with("kind", "input") == [("a", "input.0"), ("c", "")]
    assert len(graph.variables_with("kind")) == 3
