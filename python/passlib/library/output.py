"""Where the text that libraries print goes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from passlib.errors import printable

_recording: ContextVar[list[str] | None] = ContextVar("recording", default=None)


def write(text: str) -> None:
    """Write a library's text to `sys.stdout`, and into the innermost `recorded` list."""
    record = _recording.get()
    if record is not None:
        record.append(text)
    sys.stdout.write(text)


def write_escaped(text: str) -> None:
    """Write text of a standard pass, which has names from files in it."""
    write(printable(text, keep="\n"))


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Return a list that also gets what libraries print in this context."""
    record: list[str] = []
    token = _recording.set(record)
    try:
        yield record
    finally:
        _recording.reset(token)
