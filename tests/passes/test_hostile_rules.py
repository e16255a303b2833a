"""Patterns and rules as they should not be: errors that say so, and no hang."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from passlib.errors import PassError, PatternError

SYM = passlib.sym


def load(nodes: str) -> passlib.Model:
    """A model of ONNX's textual nodes, each named after its first output."""
    message = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> g (float[3, 3] x) => (float[3, 3] y) {{{nodes}}}'
    )
    for node in message.graph.node:
        node.name = node.output[0]
    return passlib.load(message)


THREE = "a, b, c = Split<num_outputs = 3>(x) d = Relu(b) e = Relu(c) f = Relu(a) y = Sum(d, e, f)"


@pytest.mark.parametrize(
    ("pattern", "nodes"),
    [
        ("p, q, r = Split(x)\n d = Relu(q)\n e = Relu(r)\n f = Relu(p)", ("a", "d", "e", "f")),
        ("s = Split(x); f = Relu(s); e = Relu(s:2); d = Relu(s:1)", ("a", "f", "e", "d")),
        ("s = shared Split(x); e = Relu(s:2); d = Relu(s:1)", ("a", "e", "d")),
        ("s = Split(x); e = Relu(s:2); d = Relu(s:1)", None),
    ],
)
def test_results_behind_other_outputs_of_one_operation(
    pattern: str, nodes: tuple[str, ...] | None
) -> None:
    model = load(THREE)
    found = [place.nodes for place in passlib.find(model, pattern)]
    assert found == ([nodes] if nodes else [])
    reasons = [passlib.why(model, pattern, name) for name in "def"]
    assert (None in reasons) == bool(nodes)


def test_a_result_that_nothing_uses_any_more_is_left_alone() -> None:
    @passlib.rewrite("p, q, r = Split(x)", replace=True)
    def middle(m: passlib.Match) -> Any:
        return {"q": m.x}

    after = load(THREE).optimize_for("middle")
    uses = {
        node.name: [(entry.node.name, entry.index) for entry in node.inputs]
        for node in after.symbol.nodes()
        if node.op == "Relu"
    }
    assert uses == {"d": [("x", 0)], "e": [("a", 2)], "f": [("a", 0)]}


def tree(depth: int, leaf: Callable[[], str], name: Callable[[str], str]) -> str:
    """Sums of sums as text; ``name`` makes the text of one of two others."""
    if depth == 0:
        return leaf()
    return name(f"Add({tree(depth - 1, leaf, name)}, {tree(depth - 1, leaf, name)})")


def test_too_many_orders_of_inputs_are_an_error() -> None:
    lines: list[str] = []

    def named(text: str) -> str:
        lines.append(f"t{len(lines)} = {text}")
        return lines[-1].split()[0]

    root = tree(6, lambda: "x", named)
    names = iter(range(64))
    leaves = tree(6, lambda: "Neg(z)" if (n := next(names)) == 63 else f"l{n}", str)
    model = load(" ".join(lines) + f" y = Relu({root})")
    with pytest.raises(PassError, match=r"at '\w+' \(Add\) takes more than \d+ attempts"):
        passlib.find(model, f"Relu({leaves})")


def test_errors_show_the_place_only() -> None:
    with pytest.raises(PatternError, match="not 'ö'") as caught:
        passlib.rewrite("Relu(" + "ö, " * 1000 + ")")
    assert len(str(caught.value)) < 300
    with pytest.raises(PatternError) as caught:
        passlib.rewrite("y = Sum(" + "x, " * 1000 + "é" + ", x" * 1000 + ")")
    assert str(caught.value).endswith("...'")
    assert caught.value.column == 3009
    assert len(str(caught.value).encode()) < 300


@pytest.mark.parametrize("text", [3, None, b"Relu(x)", ["Relu(x)", 3], {"Relu(x)": 1}, len])
def test_patterns_are_text(text: Any) -> None:
    for function in (passlib.rewrite, lambda t: passlib.find(load(THREE), t)):
        with pytest.raises(TypeError, match="a pattern must be a string, such as"):
            function(text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda m: "Gemm", "a rule must return None or a replacement .* not str"),
        (lambda m: b"ab", "not bytes"),
        (lambda m: m.y.node, "not EditableNode"),
        (lambda m: [], "the pattern has 1 results, and the rule returned 0 values"),
        (lambda m: {"q": m.x}, "has no value 'q'"),
        (lambda m: {"x": m.y}, "'x' is no result of the pattern"),
        (lambda m: m.op("null"), "a parameter is added with m.parameter"),
        (
            lambda m: m.op("Neg", m.x, a={}),
            "an attribute must be a string, a number or a list, not dict",
        ),
        (lambda m: m.parameter("p", object()), "no dtype for object"),
        (lambda m: m.parameter("p", ["a"]), "no dtype for <U1"),
    ],
)
def test_rules_that_return_something_else(body: Callable[..., Any], message: str) -> None:
    body.__name__ = "returns_something_else"
    passlib.rewrite("y = Sum(*xs)", replace=True)(lambda m: None)
    passlib.rewrite("y = Relu(x)", name="returns_something_else", replace=True)(body)
    with pytest.raises(PassError, match=message):
        load(THREE).optimize_for("returns_something_else")


def test_a_match_can_be_copied_and_asked() -> None:
    @passlib.rewrite("y = Relu(x)", replace=True)
    def asked(m: passlib.Match) -> Any:
        assert copy.copy(m).x == m.x
        assert not hasattr(m, "z")
        return m.op("Neg", m.x)

    assert "Relu" not in [n.op for n in load(THREE).optimize_for(asked).symbol.nodes()]


@pytest.mark.parametrize(
    ("model", "op", "pattern"),
    [
        (load("y = Relu(x)"), "Split", "Relu(x)"),
        (passlib.Model(SYM.relu(SYM.var("x"), name="y")), "SliceChannel", "relu(x)"),
        (passlib.Model(SYM.relu(SYM.var("x"), name="y")), "Custom", "relu(x)"),
    ],
)
def test_the_number_of_outputs_is_stated_where_an_operator_wants_it(
    model: passlib.Model, op: str, pattern: str
) -> None:
    seen: list[dict[str, str]] = []

    @passlib.rewrite(pattern, replace=True)
    def halves(m: passlib.Match) -> Any:
        seen.append(dict(m.op(op, m.x, num_outputs=2)[0].node.attrs))

    model.optimize_for("halves")
    assert seen[0].get("num_outputs") == (None if op == "Custom" else "2")


def test_arrays_that_no_library_could_get_are_no_parameters() -> None:
    x, w = SYM.var("x"), SYM.var("w")
    model = passlib.Model(SYM.broadcast_mul(x, w), {"w": np.ones(3, complex)})
    assert len(passlib.find(model, "broadcast_mul(x, w)")) == 1
    assert passlib.find(model, "broadcast_mul(x, w:param)") == []


def test_shapes_that_a_model_without_weights_states() -> None:
    model = load("a = Relu(x) y = Relu(a)")
    found = passlib.find(model, "Relu(b:value[rank=2, type=float32])", shapes=True)
    assert [place.nodes for place in found] == [("a",), ("y",)]
    seen: list[Any] = []

    @passlib.graph_pass(shapes=True, replace=True)
    def look(graph: passlib.Graph) -> None:
        seen.append(graph.outputs[0].shape)

    model.optimize_for("look")
    SYM.relu(SYM.var("x", shape=(2, 3))).optimize_for("look")
    assert seen == [(3, 3), (2, 3)]
