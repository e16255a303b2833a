"""Collecting problems."""

from __future__ import annotations

from typing import Any

from passlib.dialects.ark.tensors import kind
from passlib.dialects.protocol import Problem

__all__ = ["Report"]

_NAMES: dict[type, str] = {
    int: "a whole number",
    list: "an array",
    str: "a text",
    bool: "true or false",
    dict: "an object",
}


class Report:
    """What was found so far.

    Attributes
    ----------
    problems : list of Problem
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def error(self, place: str, message: str) -> None:
        """Add an error."""
        self.problems.append(Problem("error", place, message))

    def warning(self, place: str, message: str) -> None:
        """Add a warning."""
        self.problems.append(Problem("warning", place, message))

    def expect(self, owner: dict[str, Any], key: str, wanted: type, path: str) -> Any:
        """Give what stands under a key; report and give None if it is not of the wanted type."""
        place = f"{path}.{key}" if path else key
        if key not in owner:
            self.error(place, "the key is missing")
            return None
        value = owner[key]
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            self.error(place, f"{_NAMES[wanted]} is wanted, not {kind(value)}")
            return None
        return value
