"""resolveIf: branches and loops whose course is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_models import LOOP, NESTED
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

X = np.array([[1.5, -2.0, 3.0]], np.float32)

BRANCHES = {
    "then": (
        """g (float[N, 3] x) => (float[N, 3] y) <bool c = {1}, float[3] w = {1, 2, 3}>
        {
          a = Neg(x)
          y = If (c) <then_branch = t () => (u) { u = Add(a, w) },
                      else_branch = e () => (v) { v = Mul(a, w) }>
        }""",
        {"Neg": 1, "Add": 1},
    ),
    "else, with a constant of its own": (
        """g (float[N, 3] x) => (float[N, 3] y) <bool c = {0}>
        {
          y = If (c) <then_branch = t () => (u) { u = Neg(x) },
                      else_branch = e () => (v) <float[3] w = {1, 2, 3}> { v = Mul(x, w) }>
        }""",
        {"Mul": 1},
    ),
    "a branch that returns what is outside": (
        """g (float[N, 3] x) => (float[N, 3] y) <bool c = {1}>
        {
          a = Neg(x)
          b = If (c) <then_branch = t () => (u) { u = Identity(a) },
                      else_branch = e () => (v) { v = Mul(a, a) }>
          y = Abs(b)
        }""",
        {"Neg": 1, "Identity": 1, "Abs": 1},
    ),
    "an If in the branch, whose condition is a constant of the branch": (
        """g (float[N, 3] x) => (float[N, 3] y) <bool c = {1}>
        {
          y = If (c) <then_branch = t () => (u) <bool d = {0}> {
                u = If (d) <then_branch = t2 () => (p) { p = Neg(x) },
                            else_branch = e2 () => (q) { q = Abs(x) }>
              },
              else_branch = e () => (v) { v = Mul(x, x) }>
        }""",
        {"Abs": 1},
    ),
    "names that are taken": (
        """g (float[N, 3] x) => (float[N, 3] y) <bool c = {1}>
        {
          [n] a = Neg(x)
          b = If (c) <then_branch = t () => (u) { [n] u = Exp(a) },
                      else_branch = e () => (v) { [n] v = Mul(a, a) }>
          y = Add(a, b)
        }""",
        {"Neg": 1, "Exp": 1, "Add": 1},
    ),
    "an input decides": (
        """g (float[N, 3] x) => (float[N, 3] y)
        {
          s = ReduceSum <keepdims = 0> (x) c = Cast <to = 9> (s)
          y = If (c) <then_branch = t () => (u) { u = Neg(x) },
                      else_branch = e () => (v) { v = Abs(x) }>
        }""",
        {"ReduceSum": 1, "Cast": 1, "If": 1, "Neg": 1, "Abs": 1},
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_if(name: str, tmp_path: Path) -> None:
    text, expected = BRANCHES[name]
    data = parsed(text)
    made = after(data, "resolveIf", tmp_path)
    assert operators(made) == expected
    assert same_bits(results(made, {"x": X}), results(data, {"x": X}))


CONSTANTS = [
    ("int64", "value_int = 7", np.array(7)),
    ("int64[3]", "value_ints = [7, -8, 9]", np.array([7, -8, 9])),
    ("float", "value_float = 2.5", np.array(2.5, np.float32)),
    ("float[2]", "value_floats = [2.5, -1.5]", np.array([2.5, -1.5], np.float32)),
    ("int32[2]", "value = int32[2] {1, -2}", np.array([1, -2], np.int32)),
]


@pytest.mark.parametrize(("kind", "stated", "wanted"), CONSTANTS)
def test_constants_of_a_branch_become_weights(
    kind: str, stated: str, wanted: np.ndarray[Any, Any], tmp_path: Path
) -> None:
    data = parsed(
        f"""g (float[N] x) => ({kind} y) <bool c = {{1}}>
        {{
          y = If (c) <then_branch = t () => (u) {{ u = Constant <{stated}> () }},
                      else_branch = e () => (v) {{ v = Constant <{stated}> () }}>
        }}"""
    )
    made = after(data, "resolveIf", tmp_path)
    assert "If" not in operators(made)
    assert same_bits(results(made, {"x": X[0]}), [wanted])


def test_nothing_is_done_where_an_input_decides(tmp_path: Path) -> None:
    data = parsed(NESTED)
    assert operators(after(data, "resolveIf", tmp_path)) == operators(data)


COUNTS = {
    "one round": ("int64 n = {1}, bool c = {1}", {"Add": 1, "Unsqueeze": 1, "Identity": 1}),
    "two rounds": ("int64 n = {2}, bool c = {1}", {"Add": 1, "Loop": 1, "Identity": 2}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_loop(name: str, tmp_path: Path) -> None:
    constants, expected = COUNTS[name]
    data = parsed(
        f"""g (float[3] x) => (float[3] y, float[K, 3] all) <{constants}>
        {{
          y, all = Loop (n, c, x) <
            body = b (int64 i, bool go, float[3] u) => (bool on, float[3] now, float[3] scan) {{
              on = Identity(go) now = Add(u, u) scan = Identity(now)
            }}>
        }}"""
    )
    made = after(data, "resolveIf", tmp_path)
    assert operators(made) == expected
    assert same_bits(results(made, {"x": X[0]}), results(data, {"x": X[0]}))


@pytest.mark.parametrize(
    ("constants", "first"), [("int64 n = {0}, bool c = {1}", 0), ("int64 n = {5}, bool c = {0}", 0)]
)
def test_a_loop_of_no_round_returns_what_it_is_given(
    constants: str, first: int, tmp_path: Path
) -> None:
    data = parsed(
        f"""g (float[3] x) => (float[3] y) <{constants}>
        {{
          a = Neg(x)
          y = Loop (n, c, a) <
            body = b (int64 i, bool go, float[3] before) => (bool on, float[3] now) {{
              on = Identity(go) now = Add(before, before)
            }}>
        }}"""
    )
    made = after(data, "resolveIf", tmp_path)
    assert operators(made) == {"Neg": 1}
    assert same_bits(results(made, {"x": X[first]}), results(data, {"x": X[first]}))


def test_the_number_of_the_round_is_0(tmp_path: Path) -> None:
    data = parsed(
        """g (float[3] x) => (float[3] y) <int64 n = {9}, bool c = {1}>
        {
          y = Loop (n, c, x) <
            body = b (int64 i, bool go, float[3] before) => (bool on, float[3] now)
            <bool on = {0}> { f = Cast <to = 1> (i) now = Add(before, f) }>
        }"""
    )
    made = after(data, "resolveIf", tmp_path)
    assert operators(made) == {"Cast": 1, "Add": 1}
    assert same_bits(results(made, {"x": X[0]}), results(data, {"x": X[0]}))


def test_a_loop_whose_count_is_fed_stays(tmp_path: Path) -> None:
    data = parsed(LOOP)
    assert operators(after(data, "resolveIf", tmp_path))["Loop"] == 1
