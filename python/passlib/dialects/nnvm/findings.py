"""What is found wrong with a file, and the readers of single values that find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

__all__ = ["LIMIT", "Finding", "Report", "describe_type", "integers", "is_integer"]

LIMIT = 2**31
"""Node numbers, output numbers and versions are below this in every program that reads them."""


class Finding(NamedTuple):
    """Something that is wrong."""

    severity: Literal["error", "warning"]
    place: str
    message: str
    unsound: bool = False
    """Whether the file is well formed, and only the graph in it contradicts itself."""
    bearable: bool = False
    """Whether the graph can be read and written all the same."""


Report = Callable[[Finding], None]
"""Takes findings one by one."""


def is_integer(value: Any) -> bool:
    """Whether a parsed value is a whole number from 0 up that fits 31 bits."""
    return type(value) is int and 0 <= value < LIMIT


def integers(value: Any) -> bool:
    """Whether a parsed value is a list of whole numbers."""
    return isinstance(value, list) and all(type(item) is int for item in value)


def describe_type(value: Any) -> str:
    """Name the JSON type of a parsed value, and a short one itself."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the number {getattr(value, 'text', value)}"
