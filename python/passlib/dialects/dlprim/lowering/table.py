"""The table that the modules of this package register their functions in."""

from __future__ import annotations

from passlib.lowering import Lowerings

__all__ = ["table"]

table = Lowerings("DLPrimitives")
