"""fuseFunctions: functions that are written as several operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rewriting import after, operators, parsed, results

QUANTIZED = (
    "a = ReduceMin<keepdims = 0>(x) b = Min(a, zero) c = ReduceMax<keepdims = 0>(x) "
    "d = Max(c, zero) e = Sub(d, b) s = Div(e, full) f = Div(b, s) g = Sub(zero, f) "
    "h = Clip(g, zero, full) i = Round(h) z = Cast<to = 2>(i) "
    "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"
)
PARTS = dict.fromkeys(
    ("ReduceMin", "Min", "ReduceMax", "Max", "Clip", "Round", "Cast", "QuantizeLinear"), 1
)
CASES = {
    "Sigmoid": ("a = Neg(x) b = Exp(a) c = Add(one, b) y = Div(one, c)", {"Sigmoid": 1}),
    "Sigmoid by Reciprocal": (
        "a = Neg(x) b = Exp(a) c = Add(b, one) y = Reciprocal(c)",
        {"Sigmoid": 1},
    ),
    "no Sigmoid": (
        "a = Neg(x) b = Exp(a) c = Add(b, six) y = Div(one, c)",
        {"Neg": 1, "Exp": 1, "Add": 1, "Div": 1},
    ),
    "Softsign": ("a = Abs(x) b = Add(a, one) y = Div(x, b)", {"Softsign": 1}),
    "HardSigmoid": (
        "a = Add(x, three) b = Clip(a, zero, six) y = Div(b, six)",
        {"HardSigmoid": 1},
    ),
    "HardSwish": (
        "a = Add(x, three) b = Clip(a, zero, six) c = Mul(x, b) y = Div(c, six)",
        {"HardSwish": 1},
    ),
    "ReduceL1": ("a = Abs(x) y = ReduceSum(a, axes)", {"ReduceL1": 1}),
    "ReduceL2": ("a = Mul(x, x) b = ReduceSum(a, axes) y = Sqrt(b)", {"ReduceL2": 1}),
    "squares that two use": (
        "a = Mul(x, x) b = ReduceSum(a, axes) y = Add(b, a)",
        {"Mul": 1, "ReduceSum": 1, "Add": 1},
    ),
    "ReduceMean": ("a = ReduceSum(x, axes) y = Div(a, three)", {"ReduceMean": 1}),
    "a sum through another number": (
        "a = ReduceSum(x, axes) y = Div(a, six)",
        {"ReduceSum": 1, "Div": 1},
    ),
    "DynamicQuantizeLinear": (QUANTIZED, {"DynamicQuantizeLinear": 1, "DequantizeLinear": 1}),
    "DynamicQuantizeLinear whose scale nothing else reads": (
        f"{QUANTIZED.partition(' y =')[0]} y = Cast<to = 1>(q)",
        {"DynamicQuantizeLinear": 1, "Cast": 1},
    ),
    "a range without 0": (
        QUANTIZED.replace("Min(a, zero)", "Min(a, six)"),
        {**PARTS, "Sub": 2, "Div": 2, "DequantizeLinear": 1},
    ),
    "another zero point": (
        QUANTIZED.replace("Sub(zero, f)", "Sub(one, f)"),
        {**PARTS, "Sub": 2, "Div": 2, "DequantizeLinear": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_become_one_operator(name: str, tmp_path: Path) -> None:
    body, expected = CASES[name]
    data = parsed(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[N, 3] x) => (float[A, B] y)
        <float zero = {{0}}, float one = {{1}}, float three = {{3}}, float six = {{6}},
        float full = {{255}},
        int64[1] axes = {{1}}> {{ {body} }}"""
    )
    made = after(data, "fuseFunctions", tmp_path)
    assert operators(made) == expected
    x = np.linspace(-6, 6, 12, dtype=np.float32).reshape(4, 3)
    for have, want in zip(results(made, {"x": x}), results(data, {"x": x}), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
