"""The table in which the modules of this package register their functions."""

from __future__ import annotations

from passlib.lowering import Lowerings

table = Lowerings("DLPrimitives")
