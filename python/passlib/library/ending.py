"""The end of the interpreter while threads are in native code."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import AbstractContextManager
from typing import Final

import passlib._core as _core

_VARIABLE: Final = "PASSLIB_EXIT_WAIT"
_SECONDS: Final = 5.0

ForeignCall: type[AbstractContextManager[None]] = _core.ForeignCall
"""A context in which native code of another package runs: the interpreter's end waits for it."""


def seconds_to_wait() -> float:
    """Return how long the end of the interpreter waits for native code that still runs.

    The environment may state it in ``PASSLIB_EXIT_WAIT``, in seconds; 5 by default.
    """
    try:
        return min(max(float(os.environ.get(_VARIABLE, _SECONDS)), 0.0), 1e6)
    except ValueError:
        return _SECONDS


def _close() -> None:
    """Stop other threads at their next native call, and wait for calls that run."""
    seconds = seconds_to_wait()
    left = _core.close_gate(seconds)
    if left > 0 and sys.stderr is not None:
        sys.stderr.write(
            f"passlib: the process ends while {left} thread(s) run native code, {seconds:g} s "
            f"after the program did ({_VARIABLE} sets how long it waits); join threads before\n"
        )


atexit.register(_close)
