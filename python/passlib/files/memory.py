"""Memory that the C library keeps after it was freed."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def release_unused() -> None:
    """Return freed memory to the system, where the C library can (glibc).

    Compiling a model takes and frees several times the memory of its weights. glibc keeps blocks
    of that size for later once some were freed.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    trim.argtypes = [ctypes.c_size_t]
    return trim
