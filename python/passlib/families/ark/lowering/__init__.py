"""Lowering of ARK models to ONNX; one module for each family of operators."""

from __future__ import annotations

import functools

from passlib.families.ark.lowering.table import TABLE
from passlib.lowering import Lowerings

__all__ = ["load_table"]


@functools.cache
def load_table() -> Lowerings:
    """Return the table of all lowering functions, for graphs of values."""
    TABLE.fill(__name__, __path__)
    return TABLE
