"""What a model looks like, in a line, in a table and in a notebook."""

from __future__ import annotations

from passlib.model.appearance.lines import described, described_type, page
from passlib.model.appearance.summary import OperatorRow, Summary, summarized

__all__ = ["OperatorRow", "Summary", "described", "described_type", "page", "summarized"]
