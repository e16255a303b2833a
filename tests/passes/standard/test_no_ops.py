"""removeNoOps: what returns its input, and what only seems to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewriting import after, operators, parsed, results, same_bits

X = np.array([[1.5, -0.0, np.nan], [np.inf, 0.0, -3.0]], np.float32)


def model(body: str, constants: str = "") -> bytes:
    """Return a model of x, which is negated before and after."""
    weights = f"<{constants}>" if constants else ""
    return parsed(
        f"g (float[N, 3] x) => (float[A, B] y) {weights} {{ p = Neg(x) {body} y = Abs(q) }}"
    )


GONE = {
    "Identity": ("q = Identity(p)", ""),
    "Dropout": ("q, mask = Dropout(p)", ""),
    "Cast": ("q = Cast <to = 1> (p)", ""),
    "Reshape": ("q = Reshape(p, s)", "int64[2] s = {-1, 3}"),
    "Reshape with 0": ("q = Reshape(p, s)", "int64[2] s = {0, 3}"),
    "Transpose": ("q = Transpose <perm = [0, 1]> (p)", ""),
    "Pad": ("q = Pad(p, s)", "int64[4] s = {0, 0, 0, 0}"),
    "Slice": (
        "q = Slice(p, a, b, c)",
        "int64[1] a = {0}, int64[1] b = {9223372036854775807}, int64[1] c = {0}",
    ),
    "Slice of a known size": (
        "q = Slice(p, a, b, c)",
        "int64[1] a = {-3}, int64[1] b = {3}, int64[1] c = {1}",
    ),
    "Concat": ("q = Concat <axis = 0> (p)", ""),
    "Sum": ("q = Sum(p)", ""),
    "Max": ("q = Max(p)", ""),
    "Expand": ("q = Expand(p, s)", "int64[2] s = {1, 3}"),
    "Tile": ("q = Tile(p, s)", "int64[2] s = {1, 1}"),
    "Add -0.0": ("q = Add(z, p)", "float[3] z = {-0.0, -0.0, -0.0}"),
    "Sub 0.0": ("q = Sub(p, z)", "float z = {0}"),
    "Mul 1": ("q = Mul(one, p)", "float[1, 1] one = {1}"),
    "Div 1": ("q = Div(p, one)", "float[3] one = {1, 1, 1}"),
    "several in a row": (
        "a = Identity(p) b = Identity(a) c = Dropout(b) q = Cast <to = 1> (c)",
        "",
    ),
}

STAYS = {
    "Add 0.0, which turns -0.0 into 0.0": ("q = Add(p, z)", "float z = {0}"),
    "Sub -0.0": ("q = Sub(p, z)", "float z = {-0.0}"),
    "Sub from 0": ("q = Sub(z, p)", "float z = {0}"),
    "Div of 1": ("q = Div(one, p)", "float one = {1}"),
    "Mul 1 that broadcasts": ("q = Mul(p, one)", "float[2, 1, 1] one = {1, 1}"),
    "Expand to more rows": ("q = Expand(p, s)", "int64[3] s = {2, 1, 1}"),
    "Slice backwards": (
        "q = Slice(p, a, b, c, d)",
        "int64[1] a = {2}, int64[1] b = {-1000000}, int64[1] c = {1}, int64[1] d = {-1}",
    ),
    "Slice of an open size": (
        "q = Slice(p, a, b, c)",
        "int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {0}",
    ),
    "Transpose": ("q = Transpose(p)", ""),
    "Clip, which turns inf into the largest number": ("q = Clip(p)", ""),
    "Pad": ("q = Pad(p, s)", "int64[4] s = {0, 0, 0, 1}"),
    "Dropout in training": ("q, m = Dropout <seed = 1> (p, r, t)", "float r = {0.0}, bool t = {1}"),
    "Dropout whose mask is used": ("a, m = Dropout(p) b = Cast <to = 1> (m) q = Mul(a, b)", ""),
}


def inner(data: bytes) -> dict[str, int]:
    """Count the operators between those at the ends of `model`."""
    count = dict(operators(data))
    assert count.pop("Neg") == count.pop("Abs") == 1
    return count


@pytest.mark.parametrize("name", GONE)
def test_what_returns_its_input_is_gone(name: str, tmp_path: Path) -> None:
    data = model(*GONE[name])
    made = after(data, "removeNoOps", tmp_path)
    assert inner(made) == {}
    assert same_bits(results(made, {"x": X}), results(data, {"x": X}))


@pytest.mark.parametrize("name", STAYS)
def test_what_does_something_stays(name: str, tmp_path: Path) -> None:
    data = model(*STAYS[name])
    made = after(data, "removeNoOps", tmp_path)
    assert inner(made) == inner(data)
    assert same_bits(results(made, {"x": X}), results(data, {"x": X}))


def test_signed_zeros_are_an_option(tmp_path: Path) -> None:
    data = model("q = Add(p, z)", "float z = {0}")
    assert inner(after(data, "removeNoOps", tmp_path, signed_zeros=False)) == {}


EXPANDED: dict[str, tuple[str, dict[str, Any]]] = {
    "what Add broadcasts itself": ("a = Expand(r, t) y = Add(a, x)", {"Add": 1}),
    "of two, one stays": (
        "a = Expand(r, t) b = Expand(r, t) y = Add(a, b)",
        {"Expand": 1, "Add": 1},
    ),
    "what expands instead stays": (
        "a = Expand(r, t) b = Mul(a, ones) y = Relu(b)",
        {"Mul": 1, "Relu": 1},
    ),
    "what an operator needs": ("a = Expand(r, t) y = Relu(a)", {"Expand": 1, "Relu": 1}),
    "an output": ("y = Expand(r, t)", {"Expand": 1}),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_expand_before_broadcasting(name: str, tmp_path: Path) -> None:
    body, expected = EXPANDED[name]
    data = parsed(
        f"""g (float[2, 3] x) => (float[2, 3] y)
        <int64[2] t = {{2, 3}}, int64[1] one = {{1}}, float[3] ones = {{1, 1, 1}}>
        {{ r = ReduceSum <keepdims = 1> (x, one) {body} }}"""
    )
    made = after(data, "removeNoOps", tmp_path)
    assert operators(made) == {"ReduceSum": 1, **expected}
    assert same_bits(results(made, {"x": X}), results(data, {"x": X}))


def test_outputs_keep_their_names(tmp_path: Path) -> None:
    data = parsed(
        """g (float[N, 3] x) => (float[N, 3] y, float[N, 3] z, float[N, 3] u)
        { a = Neg(x) y = Identity(a) z = Identity(a) u = Identity(x) }"""
    )
    made = after(data, "removeNoOps", tmp_path)
    assert operators(made) == {"Neg": 1, "Identity": 2}
    assert same_bits(results(made, {"x": X}), results(data, {"x": X}))
