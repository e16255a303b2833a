"""ONNX Runtime fuses as much after simplification as before."""

from __future__ import annotations

import pytest

from runtime_fusions import FUSIONS, NEIGHBOURS, count, drawn, less_fused, session_operators


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
