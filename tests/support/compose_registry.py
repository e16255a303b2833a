"""The registry of the programs in compose_*.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Register a program."""
    assert function.__name__ not in PROGRAMS
    PROGRAMS[function.__name__] = function
    return function
