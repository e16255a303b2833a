"""Genuine ARK files for the tests: copies in tests/data, and all files next to the project."""

from __future__ import annotations

from pathlib import Path

import places

__all__ = ["FILES", "SHARED", "genuine"]

FILES = places.DATA / "ark"
SHARED = places.SHARED / "ark"


def genuine(*, plans: bool = True) -> list[Path]:
    """Return all files next to the project, which include the copies; without them, the copies."""
    found = sorted(SHARED.glob("*/*.json")) or sorted(FILES.glob("*.json"))
    return [path for path in found if plans or "plan" not in path.name]
