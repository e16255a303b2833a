"""Loading compiled libraries, finding what they hold, and calling it."""

from __future__ import annotations

from passlib.library import ending as ending
from passlib.library.backends import find_backend, passes
from passlib.library.call import MXNET_VERSION, Backend, Library
from passlib.library.declared import Declaration, Option
from passlib.library.loading import load, load_standard, loaded
from passlib.library.requirements import Abi, abi

__all__ = [
    "MXNET_VERSION",
    "Abi",
    "Backend",
    "Declaration",
    "Library",
    "Option",
    "abi",
    "find_backend",
    "load",
    "load_standard",
    "loaded",
    "passes",
]
