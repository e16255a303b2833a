"""propagateCasts: which casts are merged, and that no number changes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

NUMBERS = {
    "bool": 9, "int8": 3, "uint8": 2, "int16": 5, "uint16": 4, "int32": 6, "uint32": 12,
    "int64": 7, "uint64": 13, "float16": 10, "float": 1, "double": 11,
}  # fmt: skip
"""ONNX's numbers of element types."""


def extremes(name: str) -> np.ndarray[Any, Any]:
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
    if dtype.kind == "f":
        info: Any = np.finfo(dtype)
        numbers = [0.0, -0.0, 1.5, -2.5, 100.25, float(info.max), float(info.tiny), 1e-7, 4e-8]
        special = [np.nan, np.inf, -np.inf]
        return np.array([*numbers, *special], dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([low, high, 0, 1, 2, high // 2 + 1, high - 1], dtype)


@pytest.mark.sample(4)
@pytest.mark.parametrize("before", NUMBERS)
def test_no_number_changes(before: str, tmp_path: Path) -> None:
    x = extremes(before)
    given = {"x": np.stack([x, x[::-1]])}
    merged = set()
    for middle, last in itertools.product(NUMBERS, NUMBERS):
        data = parsed(
            f"g ({before}[2, N] x) => ({last}[A, B] y) {{ s = Cast <to = {NUMBERS[middle]}> (x) "
            f"t = Transpose(s) y = Cast <to = {NUMBERS[last]}> (t) }}"
        )
        made = after(data, "propagateCasts", tmp_path)
        if operators(made)["Cast"] < 2:
            merged.add((middle, last))
            assert same_bits(results(made, given), results(data, given)), (middle, last)
    assert (before, before) in merged
    wider = {"float16": "float", "float": "double", "int8": "int32", "bool": "uint8"}.get(before)
    assert wider is None or {(wider, before), (wider, "float16")} <= merged
    narrower = {"float": "float16", "double": "float", "int32": "int8", "int64": "double"}
    assert (narrower.get(before), before) not in merged


CASES = {
    # An output that is an input needs an operator.
    "undone": ("s = Cast <to = 11> (x) y = Cast <to = 1> (s)", {"Cast": 2}),
    "undone before an operator": (
        "s = Cast <to = 11> (x) t = Cast <to = 1> (s) y = Neg(t)",
        {"Neg": 1},
    ),
    "undone after moves": (
        (
            "s = Cast <to = 11> (x) u = Unsqueeze(s, zero) t = Transpose <perm = [2, 1, 0]> (u) "
            "c = Cast <to = 1> (t) y = Squeeze(c, two)"
        ),
        {"Unsqueeze": 1, "Transpose": 1, "Squeeze": 1},
    ),
    "used by another": (
        (
            "s = Cast <to = 11> (x) n = Sqrt(s) c = Cast <to = 1> (s) d = Cast <to = 1> (n) "
            "y = Add(c, d)"
        ),
        {"Cast": 2, "Sqrt": 1, "Add": 1},
    ),
    "moved for another": (
        (
            "s = Cast <to = 11> (x) t = Transpose(s) n = Sqrt(t) c = Cast <to = 1> (t) "
            "d = Cast <to = 1> (n) y = Add(c, d)"
        ),
        {"Cast": 3, "Transpose": 1, "Sqrt": 1, "Add": 1},
    ),
    "a computation between": (
        "s = Cast <to = 11> (x) t = Sqrt(s) c = Cast <to = 1> (t) y = Neg(c)",
        {"Cast": 2, "Sqrt": 1, "Neg": 1},
    ),
    "three": (
        "s = Cast <to = 11> (x) t = Cast <to = 10> (s) c = Cast <to = 1> (t) y = Neg(c)",
        {"Cast": 2, "Neg": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name: str, tmp_path: Path) -> None:
    body, expected = CASES[name]
    data = parsed(
        f"g (float[N, 3] x) => (float[A, B] y) <int64[1] zero = {{0}}, int64[1] two = {{2}}> "
        f"{{ {body} }}"
    )
    made = after(data, "propagateCasts", tmp_path)
    assert operators(made) == expected
    x = np.float32([[1.5, -0.0, np.inf], [1e-42, np.nan, 3e38]])
    assert same_bits(results(made, {"x": x}), results(data, {"x": x}))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Scaler", "offset = [0.0, 1.0, 2.0], scale = [1.0, 2.0, 3.0]"),
        ("Normalizer", 'norm = "L2"'),
        ("Imputer", "imputed_value_floats = [1.0], replaced_value_float = 0.5"),
        ("Binarizer", "threshold = 0.5"),
        ("LinearRegressor", "coefficients = [1.0, 2.0, 3.0]"),
        ("SVMRegressor", "coefficients = [1.0, 2.0, 3.0], rho = [0.5]"),
    ],
)
def test_casts_to_the_type_of_machine_learning_operators(op: str, attributes: str) -> None:
    """Inference has no rules for most of them, but their schemas fix the type."""
    head = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> '
    body = f"a = ai.onnx.ml.{op} <{attributes}> (x) b = Relu(a) c = Cast <to = 1> (b) y = Neg(c)"
    made = passlib.simplify(parsed(f"{head} g (float[N, 3] x) => (float[A, B] y) {{ {body} }}"))
    assert [node.op for node in made.symbol.nodes() if node.op != "null"] == [op, "Relu", "Neg"]
