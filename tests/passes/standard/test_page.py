"""docs/standard-passes.md has every standard pass, with what it declares, what stays and a cost."""

from __future__ import annotations

import pytest

import passlib
from pass_page import PAGE, documented, text
from passlib.library.backends import find_backend, is_standard


def test_the_declared_parts_are_those_of_the_declarations() -> None:
    """tests/support/pass_page.py writes them."""
    assert PAGE.read_text() == text()


def test_every_standard_pass_has_a_section() -> None:
    passlib.library.load_standard()
    assert {name for name in passlib.library.passes() if is_standard(name)} == set(documented())


@pytest.mark.parametrize("name", sorted(documented()))
def test_a_section_says_what_a_pass_costs(name: str) -> None:
    section = PAGE.read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert section.count("\nCost: ") == 1
    for option in find_backend(name).declaration.options:
        assert option.description
