"""Files with one huge number cost neither time nor memory."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import huge_numbers
from fuzzing import Check

CASES = [name for name, _ in huge_numbers.cases()]

CHOSEN = [
    "onnx 3, m.onnx, number 3 = 1000000000",
    # The result of a pooling has more than 2^63 rows.
    *(name for name in CASES if name.startswith("onnx 4") and name.endswith(f"= {2**63 - 1}")),
]


@functools.cache
def check() -> Check:
    return huge_numbers.prepare()


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", [*CHOSEN, *CASES[::200]])
def test_one_huge_number(name: str, tmp_path: Path) -> None:
    assert list(check()(CASES.index(name), tmp_path)) == []
