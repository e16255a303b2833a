"""Graphs that passes may not expect: dead parts, omitted inputs, nodes that fail, equal names.

``make sweep-graphs`` draws more of them at random.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import control_graphs
import passlib
from passlib.graph.plain import operators_of
from rewriting import after, parsed, results

X = np.array([[1.5, -2.0], [0.25, 4.0]], np.float32)

MODELS = {
    "a loop of one round that ignores its state": """a = Sub(x, x) y = Loop(one, yes, a)
        <body = b (int64 i, bool c, float[2, 2] s) => (bool d, float[2, 2] t) {
            d = Identity(c) t = Neg(x) }>""",
    "a loop of one round that nothing uses": """y = Neg(x) a = Sub(x, x) b = Loop(one, yes, a)
        <body = b (int64 i, bool c, float[2, 2] s) => (bool d, float[2, 2] t) {
            d = Identity(c) t = Neg(s) }>""",
    "an If that nothing uses, before another": """a = Neg(x)
        b = If(yes) <then_branch = t () => (c) { c = Abs(a) },
                     else_branch = e () => (c) { c = Exp(a) }>
        d = If(yes) <then_branch = t () => (c) { c = Abs(b) },
                     else_branch = e () => (c) { c = Exp(a) }>
        y = Relu(x)""",
    "dead layers": """a = Gemm(x, w) b = Add(a, v) c = MatMul(x, w) d = Add(c, v)
        e = Transpose(x) f = Neg(e) g = Transpose(f) h = Mul(g, v) i = Mul(h, v) y = Abs(x)""",
    "an omitted input in a branch and beside it": """a = Clip(x, , two)
        b = If(yes) <then_branch = t () => (c) { c = Clip(x, , two) },
                     else_branch = e () => (c) { c = Neg(x) }> y = Add(a, b)""",
    "an omitted input in a loop of one round": """y = Loop(one, , x)
        <body = b (int64 i, bool c, float[2, 2] s) => (bool d, float[2, 2] t) {
            d = Identity(c) t = Clip(s, , two) }>""",
    "a Reshape that fails where no run gets to": """y = If(go)
        <then_branch = t () => (a) { a = Identity(x) },
         else_branch = e () => (a) { a = Reshape(v, long) }>""",
    "branches whose values have the same names": """a = If(yes)
        <then_branch = t () => (p) { q = Neg(x) p = Abs(q) },
         else_branch = e () => (p) { q = Exp(x) p = Neg(q) }>
        y = If(go) <then_branch = t () => (p) { q = Exp(a) p = Neg(q) },
                   else_branch = e () => (p) { q = Neg(a) p = Abs(q) }>""",
    "a loop of one round, then a branch that cannot run": """n = Loop(one, yes, x)
        <body = b (int64 i, bool c, float[] s) => (bool d, float[] t) {
            d = Identity(c) t = Identity(s) }>
        y = If(go) <then_branch = t () => (a) { a = Neg(n) },
                    else_branch = e () => (a) { a = Concat<axis = 4>(n, x) }>""",
    "a known If, then a branch that cannot run": """
        n = If(yes) <then_branch = t () => (p) { p = Exp(x) },
                     else_branch = e () => (p) { p = Flatten<axis = 0>(x) }>
        y = If(go) <then_branch = t () => (a) { a = Neg(n) },
                    else_branch = e () => (a) { a = MatMul(u3, n) }>""",
    "a known shape, then a branch that cannot run": """p = Shape(x) q = Max(p, twos)
        n = Reshape(x, q)
        y = If(go) <then_branch = t () => (a) { a = Neg(n) },
                    else_branch = e () => (a) { a = MatMul(u3, n) }>""",
    "casts there and back, captured": """p = Transpose<perm = [0, 1]>(x) q = Identity(p)
        r = Cast<to = 11>(q) n = Cast<to = 1>(r)
        y = If(go) <then_branch = t () => (a) { a = Neg(n) },
                    else_branch = e () => (a) { a = Abs(n) }>""",
    "a sum of two products": "a = MatMul(x, w) b = MatMul(x, u) y = Add(a, b)",
    "turned twice, used in two places": """i = Unsqueeze(x, zero) a = Transpose<perm = [1, 2, 0]>(i)
        b = Neg(a) c = Transpose<perm = [1, 2, 0]>(b) d = Exp(c) e = Neg(d)
        f = Transpose<perm = [2, 0, 1]>(d) g = Transpose<perm = [2, 0, 1]>(e) h = Add(f, g)
        j = Transpose<perm = [1, 2, 0]>(h) k = Shape(x) y = Reshape(j, k)""",
}


@pytest.fixture(scope="module", autouse=True)
def _standard_passes() -> None:
    passlib.library.load_standard()


@pytest.mark.parametrize("name", MODELS)
def test_each_pass_alone(name: str, tmp_path: Path) -> None:
    data = model_of(MODELS[name])
    feeds = {"x": X, "go": np.array(True)}
    (want,) = results(data, feeds)
    for one in (*control_graphs.PASSES, "constantsToWeights", "simplify", "clean"):
        (have,) = results(after(data, one, tmp_path), feeds)
        np.testing.assert_allclose(have, want, rtol=1e-6, err_msg=one)


def model_of(body: str) -> bytes:
    constants = """int64 one = {1}, bool yes = {1}, float two = {2}, int64[1] zero = {0},
        int64[2] long = {3, 1}, int64[2] twos = {2, 2}, float[3] u3 = {1, 2, 3}"""
    weights = "float[2, 2] w = {1, 2, 3, 4}, float[2, 2] u = {5, 6, 7, 8}, float[2] v = {5, 6}"
    head = "g (float[2, 2] x, bool go) => (float[A, B] y)"
    return parsed(f"{head} <{constants}, {weights}> {{ {body} }}")


def test_a_model_that_cannot_run_is_returned() -> None:
    data = parsed(
        "g (float[3, 1] x) => (float[3, 1] y) <float[2] w = {1, 2}, int64[2] s = {3, 1}> "
        "{ a = Reshape(w, s) y = Add(x, a) }"
    )
    assert operators_of(passlib.simplify(data).symbol.graph).total() == 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", range(8))
def test_random_graphs(part: int) -> None:
    """With If, Loop, Scan, functions and dead parts: results stay, and nothing is raised."""
    wrong = [text for seed in range(part * 10, part * 10 + 10)
             for text in control_graphs.verdicts(seed)]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("seed", [1853, 7882])
def test_equal_names_of_nested_graphs(seed: int) -> None:
    """ONNX's inference takes them for one value, of another rank or of no known type."""
    assert list(control_graphs.verdicts(seed)) == []
