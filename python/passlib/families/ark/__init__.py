"""The ARK dialect: model files and plan files of Microsoft's ARK, in all their versions."""

from __future__ import annotations

from passlib.families.ark.lowering.lower import lower_ranks

__all__ = ["lower_ranks"]
