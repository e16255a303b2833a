"""Suspension of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_off() -> Iterator[None]:
    """Disable the collector in the block, which makes the many objects of a graph.

    The collector would traverse all of them repeatedly and find no garbage.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
