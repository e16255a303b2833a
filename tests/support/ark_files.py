"""Genuine ARK files for the tests: copies in tests/data, and all files next to the project."""

from __future__ import annotations

from pathlib import Path

import places

FILES = places.DATA / "ark"
SHARED = places.SHARED / "ark"


def genuine(*, plans: bool = True) -> list[Path]:
    """Return all files: those next to the project, and those in tests/data that are no copies."""
    shared = sorted(SHARED.glob("*/*.json"))
    copied = {f"{path.parent.name}-{path.name}" for path in shared}
    own = sorted(path for path in FILES.glob("*.json") if path.name not in copied)
    found = [*shared, *own]
    return [path for path in found if plans or "plan" not in path.name]
