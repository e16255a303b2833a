"""foldConstants: what is folded, what stays, and how large the model may become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

X = np.array([[1.5, -0.0, np.nan], [np.inf, 2.0, -3.0]], np.float32)

FOLDED = {
    "chain": (
        """g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}>
        { a = Add(w, w) b = Mul(a, w) y = Mul(x, b) }""",
        {"Mul": 1},
    ),
    "two outputs of one node": (
        """g (float[N, 3] x) => (float[N, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}>
        { a, b = Split <axis = 0> (w) c = Add(x, a) y = Sub(c, b) }""",
        {"Add": 1, "Sub": 1},
    ),
    "nested graph of constants": (
        """g (float[N, 3] x) => (float[N, 3] y) <bool c = {1}, float[3] w = {1, 2, 3}>
        {
          a = If (c) <then_branch = t () => (float[3] u) { u = Neg(w) },
                      else_branch = e () => (float[3] v) { v = Abs(w) }>
          y = Add(x, a)
        }""",
        {"Add": 1},
    ),
    "output of the model": (
        """g (float[N, 3] x) => (float[N, 3] y, float[3] z) <float[3] w = {1, 2, 3}>
        { a = Add(w, w) z = Neg(a) y = Add(x, z) }""",
        {"Add": 1, "Identity": 1},
    ),
    "expanded": (
        """g (float[N, 3] x) => (float[N, 3] y, int8[2, 3] z, float[0, 3] e)
        <float w = {nan}, int64[2] s = {2, 3}, int8[2, 1] v = {1, 2}, int64[2] none = {0, 3}>
        { a = Expand(w, s) y = Add(x, a) z = Expand(v, s) e = Expand(w, none) }""",
        {"Add": 1, "Identity": 2},
    ),
    "special values": (
        """g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {0, -0.0, 1}, float[1] o = {0}>
        { a = Div(w, o) b = Sqrt(a) y = Add(x, b) }""",
        {"Add": 1},
    ),
}

KEPT = {
    "random numbers": (
        """g (float[2, 3] x) => (float[2, 3] y)
        { a = RandomNormal <shape = [2, 3]> () b = Abs(a) y = Add(x, b) }""",
        {"RandomNormal": 1, "Abs": 1, "Add": 1},
    ),
    "random numbers in a nested graph": (
        """g (float[2, 3] x) => (float[2, 3] y) <bool c = {1}, float[2, 3] w = {1, 2, 3, 4, 5, 6}>
        {
          a = If (c) <then_branch = t () => (float[2, 3] u) { u = RandomUniformLike(w) },
                      else_branch = e () => (float[2, 3] v) { v = Abs(w) }>
          y = Add(x, a)
        }""",
        {"If": 1, "RandomUniformLike": 1, "Abs": 1, "Add": 1},
    ),
    "quantized weights": (
        """g (float[2, 3] x) => (float[2, 3] y) <int8[3] w = {1, 2, 3}, float s = {0.5}>
        { a = DequantizeLinear(w, s) y = Add(x, a) }""",
        {"DequantizeLinear": 1, "Add": 1},
    ),
    "what fails when it is run": (
        """g (float[2, 3] x) => (float[2, 3] y) <float[3] w = {1, 2, 3}, int64[1] i = {7}>
        { a = Gather(w, i) b = Neg(w) c = Add(a, b) y = Add(x, c) }""",
        {"Gather": 1, "Add": 2},
    ),
    "default of an input": (
        """g (float[2, 3] x, float[3] w) => (float[2, 3] y) <float[3] w = {1, 2, 3}>
        { a = Neg(w) y = Add(x, a) }""",
        {"Neg": 1, "Add": 1},
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_operators_on_constants_are_computed(name: str, tmp_path: Path) -> None:
    text, expected = FOLDED[name]
    data = parsed(text)
    made = after(data, "foldConstants", tmp_path)
    assert operators(made) == expected
    assert same_bits(results(made, {"x": X}), results(data, {"x": X}))


@pytest.mark.parametrize("name", KEPT)
def test_these_stay(name: str, tmp_path: Path) -> None:
    text, expected = KEPT[name]
    assert operators(after(parsed(text), "foldConstants", tmp_path)) == expected


@pytest.mark.parametrize(
    ("most", "expected"), [(4_000_000, {"Add": 1}), (3_999_000, {"Expand": 1, "Add": 1})]
)
def test_growth_has_a_bound(most: int, expected: dict[str, int], tmp_path: Path) -> None:
    data = parsed(
        """g (float[1000, 1000] x) => (float[1000, 1000] y) <int64[1] n = {500}, float v = {2}>
        { m = Add(n, n) s = Concat <axis = 0> (m, m) a = Expand(v, s) y = Add(x, a) }"""
    )
    made = after(data, "foldConstants", tmp_path, max_growth=most)
    # Of an operator that would exceed the bound the inputs are folded all the same.
    assert operators(made) == expected
    x = np.zeros((1000, 1000), np.float32)
    assert same_bits(results(made, {"x": x}), results(data, {"x": x}))


def test_weights_that_nothing_else_needs_are_gone(tmp_path: Path) -> None:
    data = parsed(
        """g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}, float[3] v = {4, 5, 6}>
        { a = Add(w, v) b = Mul(x, v) y = Mul(b, a) }"""
    )
    model = passlib.load(data).optimize_for("foldConstants")
    assert len(model.args) == 2
    assert "v" in model.args
    assert "w" not in model.args


def test_intermediate_results_have_a_bound(tmp_path: Path) -> None:
    """Sixteen results of 64 kB each make one number."""
    made = " ".join(f"c{i} = ConstantOfShape(s)" for i in range(16))
    named = ", ".join(f"c{i}" for i in range(16))
    data = parsed(
        f"""g (float[N] x) => (float[N] y) <int64[2] s = {{128, 128}}>
        {{ {made} t = Sum({named}) r = ReduceSum <keepdims = 0> (t) y = Add(x, r) }}"""
    )
    assert operators(after(data, "foldConstants", tmp_path)) == {"Add": 1}
    with passlib.limits(tensor_bytes=15 << 16):
        kept = operators(after(data, "foldConstants", tmp_path))
    assert kept["Sum"] == kept["ReduceSum"] == 1
