"""ONNX Runtime fuses as much after simplification as before."""

from __future__ import annotations

import pytest

from rewriting import operators, parsed
from runtime_fusions import (
    FUSIONS,
    NEIGHBOURS,
    count,
    drawn,
    less_fused,
    session_operators,
    simplified,
)


@pytest.mark.parametrize("name", FUSIONS)
def test_each_is_one_that_the_runtime_knows(name: str) -> None:
    data = drawn(name)
    assert count(session_operators(data, "extended"), FUSIONS[name].fused)
    assert less_fused(data, FUSIONS[name].fused) == []
    assert less_fused(data, FUSIONS[name].fused, exact=True) == []


@pytest.mark.sample(60)
@pytest.mark.parametrize("beside", NEIGHBOURS)
@pytest.mark.parametrize("name", FUSIONS)
def test_it_stays_between_others(name: str, beside: str) -> None:
    assert less_fused(drawn(name, beside, beside), FUSIONS[name].fused) == []


@pytest.mark.parametrize("inverse", ["n = Mul(x, d)", "n = Mul(d, x)"])
def test_a_normalization_by_an_inverse_becomes_a_quotient(inverse: str) -> None:
    data = parsed(
        "g (float[2, 3, 8] x) => (float[2, 3, 8] y) <float one = {1}, float two = {2}, "
        "float e = {0.00001}, float[8] g = {1, 2, 3, 4, 5, 6, 7, 8}> "
        "{ p = Pow(x, two) m = ReduceMean<axes = [-1]>(p) a = Add(m, e) r = Sqrt(a) "
        f"d = Div(one, r) {inverse} y = Mul(n, g) }}"
    )
    made = operators(simplified(data))
    assert made == {"Pow": 1, "ReduceMean": 1, "Add": 1, "Sqrt": 1, "Div": 1, "Mul": 1}
    assert less_fused(data, "SimplifiedLayerNormalization") == []
