"""The ops of a file that is about to be written."""

from __future__ import annotations

from typing import NamedTuple

from passlib.dialects.ark.operators import FileOp
from passlib.dialects.ark.resolve import Resolved

__all__ = ["Item"]


class Item(NamedTuple):
    """An op of the new file.

    Attributes
    ----------
    resolved : Resolved
    original : FileOp or None
        The op in the file that was read; None for a new one.
    """

    resolved: Resolved
    original: FileOp | None

    @property
    def position(self) -> int:
        """Its position among the ops of its node or task."""
        return 0 if self.original is None else self.original.place.position
