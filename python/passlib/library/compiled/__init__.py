"""Passes and partitioners of libraries."""

from __future__ import annotations

from passlib.library.compiled.compiled_pass import CompiledPass
from passlib.library.compiled.partitioner import Partitioner

__all__ = ["CompiledPass", "Partitioner"]
