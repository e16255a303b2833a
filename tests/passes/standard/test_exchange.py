"""cancelTransposes around operators that add and remove axes of size 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

A, B = "int64[1] a = {0}", "int64[1] a = {1}"

CASES = {
    "Unsqueeze between Transposes": (
        "s = Transpose <perm=[1, 0]> (x) t = Unsqueeze(s, a) y = Transpose <perm=[0, 2, 1]> (t)",
        ("N, 4", A),
        {"Unsqueeze": 1},
    ),
    "Unsqueeze between Transposes that do not cancel": (
        "s = Transpose <perm=[1, 0]> (x) t = Unsqueeze(s, a) y = Transpose <perm=[2, 1, 0]> (t)",
        ("N, 4", B),
        {"Unsqueeze": 1},
    ),
    "three axes": (
        ("s = Transpose <perm=[2, 0, 1]> (x) t = Unsqueeze(s, a)"
        " y = Transpose <perm=[1, 0, 3, 2]> (t)"),
        ("N, 4, 3", A),
        {"Unsqueeze": 1, "Transpose": 1},
    ),
    "Transpose between Unsqueeze and Squeeze": (
        "s = Unsqueeze(x, a) t = Transpose <perm=[2, 1, 0]> (s) y = Squeeze(t, a)",
        ("N, 4", B),
        {"Transpose": 1},
    ),
    "Squeeze between Transposes": (
        "s = Transpose <perm=[2, 0, 1]> (x) t = Squeeze(s, a) y = Transpose <perm=[1, 0]> (t)",
        ("1, N, 4", B),
        {"Squeeze": 1},
    ),
    "Unsqueeze of what something else uses": (
        ("s = Transpose <perm=[1, 0]> (x) t = Unsqueeze(s, a) u = Transpose <perm=[0, 2, 1]> (t)"
        " v = ReduceMax(s) y = Add(u, v)"),
        ("N, 4", A),
        {"Transpose": 2, "Unsqueeze": 1, "ReduceMax": 1, "Add": 1},
    ),
}  # fmt: skip


RANKS = {
    "three axes": 4,
    "Transpose between Unsqueeze and Squeeze": 2,
    "Squeeze between Transposes": 2,
}
"""Of results, unless they have three axes."""


@pytest.mark.parametrize("name", CASES)
def test_fewer_are_left(name: str, tmp_path: Path) -> None:
    body, (sizes, constant), expected = CASES[name]
    ends = ", ".join("ABCD"[: RANKS.get(name, 3)])
    data = parsed(f"g (float[{sizes}] x) => (float[{ends}] y) <{constant}> {{ {body} }}")
    made = after(data, "cancelTransposes", tmp_path)
    assert operators(made) == expected
    shape = [5 if size == "N" else int(size) for size in sizes.split(", ")]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    assert same_bits(results(made, {"x": x}), results(data, {"x": x}))
