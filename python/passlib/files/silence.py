"""Output of libraries that nobody is to see."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Discard what the process writes to its standard streams in a ``with`` block."""
    kept = [os.dup(number) for number in (1, 2)]
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        try:
            _flush()
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
        finally:
            _flush()
            for number, own in zip((1, 2), kept, strict=True):
                os.dup2(own, number)
                os.close(own)


def _flush() -> None:
    """Write what Python and the C library hold back."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    ctypes.CDLL(None).fflush(None)
