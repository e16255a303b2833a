"""Paths of the tests and their data."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DATA = TESTS / "data"
"""Data that belong to the project."""
SHARED = ROOT.parent / "shared" / "data"
"""The shared test data, which may be absent."""
