"""Standard passes about operators that only move elements."""

from __future__ import annotations

from passlib.passes.standard.moves import (  # noqa: F401 (they register passes)
    space_to_depth,
)
