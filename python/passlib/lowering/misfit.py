"""The exception of rules that compare shapes and types without knowing where these stand."""

from __future__ import annotations

__all__ = ["Misfit"]


class Misfit(Exception):  # noqa: N818 (never reaches a user)
    """Shapes or types that do not fit an operator.

    Caught within a dialect and reported with its place.
    """
