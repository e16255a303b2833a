"""The lowest versions that are tested are those that the metadata state."""

from __future__ import annotations

import re

import pytest

from places import ROOT

BOUND = re.compile(r'"([-A-Za-z_0-9]+)>=([0-9.]+)(?:; (python_version >= .3\.11.))?"')


def bounds() -> set[tuple[str, str]]:
    """Return the requirements of the package and its extras, as stated for Python 3.11."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    section = text[text.index("\ndependencies = ") : text.index("[dependency-groups]")]
    return {(name, version) for name, version, _ in BOUND.findall(section)}


def pins() -> dict[str, str]:
    """Return the versions that ``make test-lowest`` installs."""
    text = (ROOT / "tests" / "lowest.txt").read_text("utf-8")
    return dict(re.findall(r"^([-\w]+)==([0-9.]+)$", text, re.M))


def test_each_extra_is_explained() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    section = text[text.index("[project.optional-dependencies]") : text.index("[project.urls]")]
    extras = re.findall(r"^(\w+) = \[", section, re.MULTILINE)
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    explained = {word for cell in table for word in re.findall(r"`(\w+)`", cell)}
    assert len(extras) > 5
    assert set(extras) <= explained


def test_each_dependency_has_a_bound_and_a_pin() -> None:
    assert {name for name, _ in bounds()} == set(pins())


@pytest.mark.parametrize(("name", "version"), sorted(bounds()))
def test_the_bound_is_tested(name: str, version: str) -> None:
    assert pins()[name] in (version, f"{version}.0")
