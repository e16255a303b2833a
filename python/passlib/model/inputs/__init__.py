"""The inputs of models: their types, and the arrays that are fed to them."""

from __future__ import annotations

from passlib.model.inputs.feeds import as_fed
from passlib.model.inputs.types import input_types

__all__ = ["as_fed", "input_types"]
