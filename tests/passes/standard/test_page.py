"""docs/standard-passes.md has every standard pass, those in Python with options and defaults."""

from __future__ import annotations

import pytest

import passlib
from passlib.library.backends import find_standard
from passlib.library.pipeline.simplification import CLEAN
from places import ROOT

PAGE = (ROOT / "docs" / "standard-passes.md").read_text()
ROUNDING = ("foldBatchNormalization", "foldLinear", "fuseMatMulAdd", "mergeFactors")


@pytest.mark.parametrize("name", [*CLEAN, *ROUNDING])
def test_a_pass_has_its_section(name: str) -> None:
    passlib.library.load_standard()
    _, found, rest = PAGE.partition(f"\n## {name}\n")
    assert found, f"docs/standard-passes.md has no section {name}"
    section = rest.partition("\n## ")[0]
    declaration = find_standard(name).declaration
    if declaration.dialects:  # options of compiled passes may have no default
        assert "\nCost: " in section
        for option in declaration.options:
            assert f"`{option.name}={option.default}`" in section
