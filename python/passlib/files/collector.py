"""Python's garbage collector, kept from searching where there is no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collection_off"]


@contextmanager
def collection_off() -> Iterator[None]:
    """Keep the collector from walking through the many objects of a graph that is being made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
