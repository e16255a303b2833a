"""Limits on what files ask for, so that a small file can take neither much memory nor time."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final


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


_FLOOR: Final = 64 << 20
_CEILING: Final = 4 << 30
_RATIO: Final = 100


@dataclass(frozen=True)
class Limits:
    """The limits on reading and running one file."""

    graph_depth: int = 100
    """Levels of graphs nested in one another."""
    expanded_bytes: int | None = None
    """Bytes that the content may take beyond those in the file; None for the default."""
    tensor_bytes: int | None = None
    """Bytes that one value of a graph may take; None for the default."""

    def expansion_of(self, size: int) -> int:
        """Return how many bytes the content of a file of ``size`` bytes may take beyond those.

        By default 100 times the file, but at least 64 MB and at most 4 GB.
        """
        if self.expanded_bytes is not None:
            return self.expanded_bytes
        return max(_FLOOR, min(_CEILING, _RATIO * size))

    def largest_tensor(self) -> int:
        """Return how many bytes one value of a graph may take: by default half of the memory."""
        if self.tensor_bytes is not None:
            return self.tensor_bytes
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


_limits: ContextVar[Limits] = ContextVar("limits", default=Limits())  # noqa: B039 (immutable)


def current_limits() -> Limits:
    """Return the limits that hold here."""
    return _limits.get()


@contextmanager
def limits(
    *,
    graph_depth: int | None = None,
    expanded_bytes: int | None = None,
    tensor_bytes: int | None = None,
) -> Iterator[Limits]:
    """Set limits on reading and running inside the block; other limits stay.

    Parameters
    ----------
    graph_depth : int, optional
        How many levels of graphs may be nested in one another in a symbol file, 100 by default.
    expanded_bytes : int, optional
        How many bytes compressed or unallocated arrays of a weight file may take beyond those in
        the file. By default 100 times the file, but at least 64 MB and at most 4 GB.
    tensor_bytes : int, optional
        How many bytes a value may take whose size the graph alone determines, where a model is
        run or exported. By default half of the machine's memory.

    Raises
    ------
    ValueError
        A limit is negative.

    Examples
    --------
    >>> import passlib as pl
    >>> text = pl.sym.relu(pl.sym.var("x")).tojson()
    >>> with pl.limits(expanded_bytes=20 << 30, graph_depth=10):
    ...     print(pl.sym.load_json(text).list_arguments())
    ['x']
    """
    given = {
        "graph_depth": graph_depth,
        "expanded_bytes": expanded_bytes,
        "tensor_bytes": tensor_bytes,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if value < 0:
            raise ValueError(f"{name} is {value}, but a limit is 0 or greater")
    token = _limits.set(replace(_limits.get(), **chosen))
    try:
        yield _limits.get()
    finally:
        _limits.reset(token)
