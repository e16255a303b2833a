"""Collection of the problems of a file."""

from __future__ import annotations

from typing import Any

from passlib.dialects.problem import Problem
from passlib.families.ark.json_values import TYPE_NAMES, kind


class Report:
    """The problems found so far.

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
        """Return the value of a key; report an unexpected type and return None."""
        place = f"{path}.{key}" if path else key
        if key not in owner:
            self.error(place, "the key is missing")
            return None
        value = owner[key]
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            self.error(place, f"expected {TYPE_NAMES[wanted]}, not {kind(value)}")
            return None
        return value
