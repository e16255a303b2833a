"""Standard passes about operators that only move elements."""

from __future__ import annotations

from passlib.passes.standard.moves import (
    casts,
    concats,
    reshapes,
    slices,
    space_to_depth,
    transposes,
)

__all__ = ["casts", "concats", "reshapes", "slices", "space_to_depth", "transposes"]
