"""Models made of other models without a pass."""

from __future__ import annotations

from passlib.model.edits.extraction import extracted
from passlib.model.edits.fixed import with_sizes
from passlib.model.edits.renaming import renamed

__all__ = ["extracted", "renamed", "with_sizes"]
