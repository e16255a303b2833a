"""What the standard passes of one simplification keep for one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_kept: ContextVar[dict[str, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def sharing(**given: Any) -> Iterator[None]:
    """Let passes keep facts about values for the passes that run after them.

    All passes inside must leave the value of each node that stays as it is.

    Parameters
    ----------
    **given
        What is known at the beginning.
    """
    token = _kept.set(given)
    try:
        yield
    finally:
        _kept.reset(token)


def kept() -> dict[str, Any] | None:
    """Return what passes keep by the name of the subject; None if each is on its own."""
    return _kept.get()
