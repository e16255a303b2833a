"""Validation of graph JSON."""

from __future__ import annotations

from pathlib import Path

from passlib.dialects.nnvm.reading.document import parse
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError

__all__ = ["validate"]


def validate(path: Path) -> list[Problem]:
    """Check a file, and report all findings in its order."""
    try:
        _, findings = parse(path.read_bytes())
    except FormatError as error:
        place = f"line {error.line}, column {error.column}" if error.line else str(path)
        return [Problem("error", place, str(error))]
    return [Problem(found.severity, found.place, found.message) for found in findings]
