"""The exception of rules that compare shapes and types without knowing where these stand."""

from __future__ import annotations


class Misfit(Exception):  # noqa: N818 (never reaches a user)
    """Shapes, types or numbers of inputs that do not fit an operator.

    Raised by rules and lowering functions; caught by their callers and reported with its place.
    """
