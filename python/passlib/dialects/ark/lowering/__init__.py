"""Lowering of ARK's operators to ONNX, one module for each family."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from passlib.dialects.ark.lowering.table import TABLE
from passlib.dialects.lowering import Lowerings

__all__ = ["load_table"]

_FAMILIES = ("arithmetic", "attention", "boxes", "conversion", "matrix", "reduction")


@lru_cache(maxsize=1)
def load_table() -> Lowerings:
    """Give the table of all lowering functions, for graphs without memory."""
    for family in _FAMILIES:
        import_module(f"passlib.dialects.ark.lowering.{family}")
    return TABLE
