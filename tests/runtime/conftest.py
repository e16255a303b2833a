"""Operators of libraries in graphs, and a count of the sessions that are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passlib
from passlib.runtime import sessions


@pytest.fixture(scope="module")
def graph_operators(
    load_plugin: Callable[[str], passlib.library.Library],
) -> passlib.library.Library:
    """Load the test library of operators for graphs."""
    return load_plugin("graph_operators")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the arguments of each session that is compiled."""
    recorded: list[Any] = []
    original = sessions.Session

    def compile_session(*args: Any, **options: Any) -> sessions.Session:
        recorded.append(args)
        return original(*args, **options)

    monkeypatch.setattr(sessions, "Session", compile_session)
    return recorded
