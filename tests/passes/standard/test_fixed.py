"""Simplification with the sizes of inputs given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import passlib as pl
from onnx_models import HEAD
from passlib.passes.cost import work_of

FLAT = (
    HEAD
    + """(float[N, C, 4] x, float[N, M] w) => (float[A, B] y) <int64[1] rest = {-1}> {
    s = Shape(x) a = Shape<start = 0, end = 1>(x) t = Concat<axis = 0>(a, rest)
    r = Reshape(x, t) b = ReduceProd<keepdims = 0>(s) f = Cast<to = 1>(b) y = Mul(r, f)
}"""
)


@pytest.fixture
def model() -> pl.Model:
    return pl.load(parser.parse_model(FLAT))


def operators(model: pl.Model) -> dict[str, int]:
    found: dict[str, int] = model.symbol.graph.operators()
    return {op: count for op, count in found.items() if op != "null"}


def shapes(model: pl.Model, folder: Path) -> dict[str, list[Any]]:
    graph = onnx.load(model.save(folder / "m.onnx")[0]).graph
    return {
        value.name: [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim]
        for value in graph.input
    }


def test_fixed_inputs_keep_their_types_and_names() -> None:
    """Rules that ask for types, and for equal open sizes, still apply."""
    text = """(float[N, 4] x, float[N, 3] b) => (float[A, 3] y) {
        a = MatMul(x, w) y = Add(a, b) w = Constant<value = float[4, 3] {1, 2, 3, 4, 5, 6,
        7, 8, 9, 8, 7, 6}>() }"""
    made = parser.parse_model(HEAD + text)
    made.graph.node.insert(0, made.graph.node.pop())
    for fixed in (None, {"x": (None, 4)}, {"x": (2, 4), "b": (2, 3)}):
        assert operators(pl.simplify(made, fixed=fixed)) == {"Gemm": 1}, fixed


def test_facts_of_changed_inputs() -> None:
    """Tables and estimates are those of the shapes that the model states now."""
    model = pl.load(parser.parse_model(HEAD + "(float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }"))
    for given, shown, flops in (
        ((2, 3), [2, 3], 6),
        (("M", 3), ["M", 3], 3),
        ((None, 3), ["N", 3], 3),
        ((7, "?"), [7, None], 7),
    ):
        found = model.with_shapes({"x": given})
        assert pl.inspect(found)["inputs"][0]["shape"] == shown
        assert pl.inspect(found)["outputs"][0]["shape"] == shown
        assert work_of(found.symbol, found.args).flops == flops


FIXED: dict[str, tuple[dict[str, Any], dict[str, list[Any]], set[str]]] = {
    "all": ({"x": (2, 3, 4)}, {"x": [2, 3, 4], "w": ["N", "M"]}, {"Reshape", "Mul"}),
    "some": (
        {"x": (None, 3, 4)},
        {"x": ["N", 3, 4], "w": ["N", "M"]},
        {"Reshape", "Shape", "ReduceProd", "Cast", "Mul"},
    ),
}


@pytest.mark.parametrize("what", FIXED)
def test_sizes_that_are_given_become_constants(what: str, model: pl.Model, tmp_path: Path) -> None:
    given, expected, left = FIXED[what]
    smaller = pl.simplify(model, fixed=given)
    assert {*operators(smaller)} == left
    assert shapes(smaller, tmp_path) == expected
    assert operators(model) != operators(smaller)
    feeds = {
        "x": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        "w": np.ones((2, 1), np.float32),
    }
    for name, value in model.run(feeds).items():
        np.testing.assert_array_equal(smaller.run(feeds)[name], value)


def test_the_option_of_a_step_is_the_same(model: pl.Model) -> None:
    expected = operators(pl.simplify(model, fixed={"x": (2, 3, 4)}))
    text = 'simplify{fixed=["x:2,3,4"]}'
    assert operators(model.optimize_for(text)) == expected
    assert operators(model.optimize_for("simplify", fixed={"x": (2, 3, 4)})) == expected
    assert operators(pl.Pipeline(text).run(model).model) == expected
    opened = model.optimize_for('simplify{fixed=["x:?,3,4"]}')
    assert operators(opened) == operators(model.simplify(fixed={"x": (None, 3, 4)}))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({"z": (2, 3)}, "no input 'z'; its inputs are x, w"),
    "another size": ({"x": (2, 3, 5)}, r"was given shape \(2, 3, 5\), but the model states"),
    "another rank": ({"x": (2, 3)}, r"was given shape \(2, 3\), but the model states"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_sizes_that_do_not_fit_are_refused(what: str, model: pl.Model) -> None:
    given, message = REFUSED[what]
    with pytest.raises(pl.GraphError, match=message):
        model.simplify(fixed=given)


def test_a_text_that_is_no_shape_is_refused(model: pl.Model) -> None:
    with pytest.raises(pl.PasslibError, match=r"option 'fixed': x: write name:1,3,224,224"):
        model.optimize_for("simplify{fixed=[x]}")


def test_models_of_other_dialects_name_the_way_out() -> None:
    model = pl.Model(pl.sym.relu(pl.sym.var("x")), {}, {})
    with pytest.raises(pl.UnsupportedError, match=r"is of mxnet; Model\.to_onnx\(shapes=\)"):
        model.simplify(fixed={"x": (2, 3)})
