"""Lowering of ARK's operators to ONNX, one module for each family."""

from __future__ import annotations

import functools

from passlib.dialects.ark.lowering.table import TABLE
from passlib.lowering import Lowerings

__all__ = ["load_table"]


@functools.cache
def load_table() -> Lowerings:
    """Give the table of all lowering functions, for graphs without memory."""
    TABLE.fill(__name__, __path__)
    return TABLE
