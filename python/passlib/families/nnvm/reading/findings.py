"""Findings about a file, and the checks of single values that make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

LIMIT = 2**31
"""Node numbers, output numbers and versions are below this in every program that reads them."""


class Finding(NamedTuple):
    """An error or a warning."""

    severity: Literal["error", "warning"]
    place: str
    message: str
    unsound: bool = False
    """Whether the file is well formed and its graph contradicts itself."""
    bearable: bool = False
    """Whether the graph can be read and written nevertheless."""


Report = Callable[[Finding], None]
"""Receives findings one by one."""


def is_integer(value: Any) -> bool:
    """Whether a parsed value is a non-negative integer of 31 bits."""
    return type(value) is int and 0 <= value < LIMIT


def integers(value: Any) -> bool:
    """Whether a parsed value is a list of integers."""
    return isinstance(value, list) and all(type(item) is int for item in value)


def describe_type(value: Any) -> str:
    """Describe a parsed value for messages by its JSON type, or itself if it is short."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the number {getattr(value, 'text', value)}"
