"""Loading compiled libraries, finding what they hold, and calling it."""

from __future__ import annotations

from passlib.library.handle import Backend, Library
from passlib.library.loading import (
    MXNET_VERSION,
    find_backend,
    load,
    load_standard,
    loaded,
)

__all__ = [
    "MXNET_VERSION",
    "Backend",
    "Library",
    "find_backend",
    "load",
    "load_standard",
    "loaded",
]
