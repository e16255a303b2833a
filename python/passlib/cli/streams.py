"""The standard streams of a command: closed, full and abandoned ones, and messages on stderr."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from pathlib import Path
from typing import TextIO

from passlib.errors import printable


def prepare() -> None:
    """Replace closed streams, and escape what the terminal's encoding does not have."""
    # Without a file at 0 to 2, a model would get the number, and what native code prints.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def settle() -> None:
    """Drop what a stream does not accept: the interpreter would fail on it again as it ends."""
    for stream in (sys.stdout, sys.stderr):
        _settle(stream)


def _settle(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


def is_abandoned() -> bool:
    """Whether stdout is a pipe whose reader, such as ``head``, has ended."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return False
    return any(event & select.POLLERR for _, event in poll.poll(0))


def report(prog: str, message: object) -> None:
    """Print one message on stderr, if it can be written."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{prog}: {printable(message)}\n")
