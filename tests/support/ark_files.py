"""Genuine ARK files for the tests: copies in tests/data, and all there are beside the project."""

from __future__ import annotations

from pathlib import Path

import places

__all__ = ["FILES", "SHARED", "genuine"]

FILES = places.DATA / "ark"
SHARED = places.SHARED / "ark"


def genuine(*, plans: bool = True) -> list[Path]:
    """All files beside the project, among which are the copies; else the copies."""
    found = sorted(SHARED.glob("*/*.json")) or sorted(FILES.glob("*.json"))
    return [path for path in found if plans or "plan" not in path.name]
