"""removeNoOps: what returns its input, and what only seems to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

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


OLD = {
    "Dropout of a test": (6, "q = Dropout <is_test = 1> (p)", "", True),
    "Dropout in training": (6, "q = Dropout(p)", "", False),
    "Dropout of inference": (7, "q = Dropout(p)", "", True),
    "Mul 1": (6, "q = Mul(p, one)", "float[2, 3] one = {1, 1, 1, 1, 1, 1}", True),
    "Mul 1 by attributes": (6, "q = Mul <broadcast = 1> (p, k)", "float[3] k = {1, 1, 1}", False),
    "Pad by paddings": (1, "q = Pad <paddings = [0, 0, 0, 0]> (p)", "", True),
    "Pad by attributes": (10, "q = Pad <pads = [0, 0, 0, 0], value = 1.0> (p)", "", True),
    "Pad of something": (10, "q = Pad <pads = [0, 0, 0, 1]> (p)", "", False),
    "Pad with axes": (18, "q = Pad(p, s, , a)", "int64[2] s = {0, 0}, int64[1] a = {1}", True),
    "Slice": (9, "q = Slice <starts = [0], ends = [9], axes = [1]> (p)", "", True),
    "Slice of a part": (9, "q = Slice <starts = [1], ends = [9], axes = [1]> (p)", "", False),
    "Split into one": (2, "q = Split <axis = 0> (p)", "", True),
    "Squeeze of nothing": (11, "q = Squeeze(p)", "", True),
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_earlier_forms_of_operators(name: str, tmp_path: Path) -> None:
    """Many of them ONNX Runtime does not run."""
    opset, body, constants, gone = OLD[name]
    data = parsed(
        f"""<ir_version: 4, opset_import: ["" : {opset}]>
        g (float[2, 3] x) => (float[A, B] y) <{constants}> {{ p = Neg(x) {body} y = Abs(q) }}"""
    )
    made = passlib.load(data).optimize_for("removeNoOps")
    assert len([node for node in made.symbol.nodes() if node.op != "null"]) == (2 if gone else 3)


EXPANDED: dict[str, tuple[str, dict[str, Any]]] = {
    "what Add broadcasts itself": ("a = Expand(r, t) y = Add(a, x)", {"Add": 1}),
    "of two, one stays": (
        "a = Expand(r, t) b = Expand(r, t) y = Add(a, b)",
        {"Expand": 1, "Add": 1},
    ),
    "of two operators, both expand": (
        "a = Expand(r, t) b = Add(a, x) c = Sub(x, a) y = Mul(b, c)",
        {"Add": 1, "Sub": 1, "Mul": 1},
    ),
    "the second input of Max": (
        "a = Expand(r, t) u = Neg(a) v = Expand(u, t) b = Max(x, v, a) y = Min(v, b)",
        {"Expand": 1, "Neg": 1, "Max": 1, "Min": 1},
    ),
    "each input of Where": (
        "a = Expand(r, t) c = Less(a, x) d = Where(c, a, x) e = Where(c, d, a) y = Neg(e)",
        {"Less": 1, "Where": 2, "Neg": 1},
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
