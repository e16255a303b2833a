"""Loops and branches are composed as MXNet composes them."""

from __future__ import annotations

import json
import re

import pytest

import passlib as mx
import places
from case_files import case_lines
from compose_loops import PROGRAMS
from passlib.errors import GraphError

CASES = {
    case["name"]: case["symbol"]
    for case in map(json.loads, case_lines(places.DATA / "mxnet" / "graph_cases.jsonl"))
}


def plain(text: str) -> str:
    """Return a graph without the numbers that MXNet counts in the whole process."""
    return re.sub(
        r'(__subgraph_name__": ?")([^"]*)', lambda m: m[1] + re.sub(r"\d", "", m[2]), text
    )


# There MXNet writes a variable twice, once for the graph and once for the branch within it.
TWICE = {"while_cond"}


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - TWICE))
def test_same_graph_as_mxnet(name: str) -> None:
    with mx.name.NameManager():
        symbol = PROGRAMS[name](mx)
    text = json.dumps(json.loads(symbol.tojson()), separators=(",", ":"))
    assert plain(text) == plain(CASES[f"{name}_0"])
    assert mx.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()


def test_a_variable_inside_and_outside_is_one_input() -> None:
    data, state, weight = (mx.sym.var(name) for name in ("data", "state", "weight"))
    outputs, _ = mx.sym.contrib.foreach(lambda x, s: (x * weight, s + weight), data, state)
    assert (outputs + weight).list_arguments() == ["data", "state", "weight"]


def test_weights_of_a_body_are_inferred() -> None:
    loop = mx.sym.contrib.foreach(
        lambda x, s: (mx.sym.FullyConnected(x, num_hidden=3, name="fc"), s + 1),
        mx.sym.var("data"),
        mx.sym.var("state"),
    )
    arguments, outputs, _ = mx.sym.Group(loop).infer_shape(data=(5, 2, 4), state=(1,))
    assert arguments == [(5, 2, 4), (1,), (3, 4), (3,)]
    assert outputs == [(5, 2, 3), (1,)]


A, B = mx.sym.var("a"), mx.sym.var("b")
WRONG = [
    (lambda: mx.sym.contrib.foreach(lambda x, s: (s, s), A, B), GraphError, "does not use 'a'"),
    (lambda: mx.sym.contrib.foreach(lambda x, s: (x, [s, s]), A, B), GraphError, "in the form"),
    (lambda: mx.sym.contrib.foreach(lambda x, s: (1, s), A, B), TypeError, "must be a symbol"),
    (lambda: mx.sym.contrib.while_loop(lambda x: x, lambda x: ([], x), [A]), ValueError, "max_it"),
    (lambda: mx.sym.contrib.while_loop(None, None, [], 3), ValueError, "at least one"),
    (
        lambda: mx.sym.contrib.while_loop(lambda x: x > 0, lambda x: ([], []), [A], 3),
        GraphError,
        "returns 0 of 1 loop_vars",
    ),
    (lambda: mx.sym.contrib.cond(A, lambda: A, lambda: [A, B]), GraphError, "different numbers"),
]


@pytest.mark.parametrize(("build", "error", "text"), WRONG)
def test_wrong_functions_are_named(build, error, text) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=text):
        build()
