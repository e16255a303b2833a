"""Libraries that several modules of this folder load."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import passlib


@pytest.fixture
def operators(
    load_plugin: Callable[[str], passlib.library.Library],
) -> passlib.library.Library:
    """Load the test library of operators."""
    return load_plugin("operators")


@pytest.fixture(scope="module")
def partitioners(
    load_plugin: Callable[[str], passlib.library.Library],
) -> passlib.library.Library:
    """Load the test library of partitioners."""
    return load_plugin("partitioners")
