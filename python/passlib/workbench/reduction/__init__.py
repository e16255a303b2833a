"""The smallest model that still shows a fault."""

from __future__ import annotations

from passlib.workbench.reduction.reducing import Reduced, reduce

__all__ = ["Reduced", "reduce"]
