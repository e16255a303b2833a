"""Standard streams of a command that may be closed, full or abandoned, and messages on stderr."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

from passlib.errors import printable


class _Output:
    """A stdout that records the errors of its writes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.errors: list[OSError] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        with self._noted():
            return self.stream.write(text)

    def flush(self) -> None:
        with self._noted():
            self.stream.flush()

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.errors.append(error)
            raise


def prepare() -> None:
    """Replace closed streams, and escape characters that the terminal's encoding lacks."""
    # Otherwise a model's file would get a number from 0 to 2, and the output of native code.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout = cast("TextIO", _Output(sys.stdout))
    sys.excepthook = _print_traceback
    warnings.showwarning = _print_warning


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning for users as a message; others name the place in the code."""
    is_ours = category is UserWarning
    place = "" if is_ours else f"{filename}:{lineno}: {category.__name__}: "
    report("passlib", f"warning: {place}{message}")


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a traceback; messages, those of other packages too, may quote names from files."""
    import traceback

    with contextlib.suppress(OSError):
        for part in traceback.format_exception(kind, error, trace):
            is_place = part.startswith(("  File ", "Traceback ", "\n"))
            text = printable(part, "\n") if is_place else printable(part[:-1]) + "\n"
            sys.stderr.write(text)


def failure_behind(error: BaseException | None) -> OSError | None:
    """Return the failed write to stdout that caused an error, such as a failed pass."""
    output = sys.stdout
    while error is not None and isinstance(output, _Output):
        if isinstance(error, OSError) and any(error is each for each in output.errors):
            return error
        error = error.__cause__ or error.__context__
    return None


def settle() -> None:
    """Drop output that cannot be written, so that the interpreter does not fail on it at exit."""
    if isinstance(sys.stdout, _Output):
        sys.stdout = sys.stdout.stream
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
    """Whether stdout is a pipe whose reader, such as ``head``, has exited."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return False
    return any(event & select.POLLERR for _, event in poll.poll(0))


def report(prog: str, message: object) -> None:
    """Print a message to stderr, if possible."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{prog}: {printable(message)}\n")
