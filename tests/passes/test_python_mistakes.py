"""Mistakes in passes in Python that would otherwise show when the model is saved."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passlib
from passlib.errors import PassError, PassResultError

SYM = passlib.sym


def model() -> passlib.Model:
    product = SYM.broadcast_mul(SYM.var("x"), SYM.var("w"), name="m")
    return passlib.Model(product, {"w": np.ones(3, "float32")})


def setter(kind: str, name: Any, value: Any) -> Callable[[passlib.Graph], None]:
    def body(graph: passlib.Graph) -> None:
        getattr(graph, kind)[name] = value

    return body


def noting(*wrong: Any, **named: Any) -> Callable[[passlib.Graph], None]:
    def body(graph: passlib.Graph) -> None:
        graph.add_node("relu", *wrong, **named)

    return body


def spelled(key: Any, value: Any) -> Callable[[passlib.Graph], None]:
    def body(graph: passlib.Graph) -> None:
        graph.nodes[-1].attrs[key] = value

    return body


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (setter("args", "w", None), PassError, "no dtype for object"),
        (setter("args", "w", "text"), PassError, "no dtype for <U4"),
        (setter("args", "w", np.zeros(3, "M8[s]")), PassError, "no dtype for datetime64"),
        (setter("args", "w", np.zeros(3, complex)), PassError, "no dtype for complex128"),
        (setter("args", 3, np.zeros(3)), PassError, "names of variables, not by 3"),
        (setter("aux", "w", np.zeros(3)), PassResultError, "left w in both args and aux"),
        (setter("attributes", "k", "{not"), PassResultError, "is no JSON text: write it with json"),
        (setter("attributes", "k", 3), PassResultError, "to 3, which is no JSON text"),
        (setter("attributes", 3, "3"), PassResultError, "the attribute 3 of the graph"),
        (spelled("axis", 3), PassError, "attribute 'axis' must be text by text, not 3: write"),
        (spelled(3, "axis"), PassError, "attribute 3 must be text by text"),
        (noting([], {"axis": 3}), PassError, "attribute 'axis' must be text by text, not 3"),
        (noting(3), PassError, r"a sequence, such as \[value\], not 3"),
        (lambda g: g.add_node("null"), PassError, "a variable is added with add_variable"),
    ],
)
def test_what_cannot_be_set(body: Any, kind: type[Exception], message: str) -> None:
    passlib.graph_pass(name="sets_wrong_things", replace=True)(body)
    with pytest.raises(kind, match=message):
        model().optimize_for("sets_wrong_things")


def test_attributes_of_a_graph_may_change() -> None:
    @passlib.graph_pass(replace=True)
    def rightly(graph: passlib.Graph) -> None:
        graph.attributes["k"] = '{"a": [1]}'
        assert "mxnet" in repr(graph)
        assert repr(graph.args) == "<args: w>"

    assert model().optimize_for(rightly).symbol.attributes["k"] == '{"a": [1]}'


class Callee:
    def __call__(self, graph: passlib.Graph) -> None:
        """Does nothing."""


@pytest.mark.parametrize(
    "thing", [3, "name", Callee(), Callee, functools.partial(print), model().optimize_for]
)
def test_only_functions_are_passes(thing: Any) -> None:
    for decorate in (passlib.graph_pass(name="thing"), passlib.rewrite("relu(x)", name="thing")):
        with pytest.raises(TypeError, match=r"expected a function, got .*: wrap it in a def"):
            decorate(thing)


def test_names_of_passes_are_text() -> None:
    with pytest.raises(TypeError, match="the name of a pass must be a string, not 3"):
        passlib.graph_pass(name=3)(lambda graph: None)  # type: ignore[call-overload]
