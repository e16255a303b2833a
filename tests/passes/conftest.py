"""The standard passes, loaded once for each module that uses them."""

from __future__ import annotations

import pytest

import passlib


@pytest.fixture(scope="module")
def standard_passes() -> passlib.library.Library:
    """Load the library of standard passes."""
    return passlib.library.load_standard()
