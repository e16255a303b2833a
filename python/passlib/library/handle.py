"""Loaded libraries, and the passes and partitioners that `optimize_for` runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from passlib import _core

__all__ = ["Backend", "Library"]


@dataclass(frozen=True)
class Library:
    """A loaded library. It stays loaded until the process ends.

    Attributes
    ----------
    path : str
        Absolute path of the file.
    sha256 : str
        Of the file as it was loaded, in hexadecimal.
    abi_version : int
        Version of the extension ABI: 7 (MXNet 1.7) to 11 (1.9, 2.0).
    passes, partitioners, ops : tuple of str
        Names that the library registered, in its order.
    """

    path: str
    sha256: str
    abi_version: int
    passes: tuple[str, ...]
    partitioners: tuple[str, ...]
    ops: tuple[str, ...]
    core: _core.Library = field(repr=False, compare=False)
    inode: tuple[int, int] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Backend:
    """A pass or a partitioner of a library, which ``optimize_for`` runs by name."""

    library: Library
    index: int
    """Position in ``library.passes`` or ``library.partitioners``."""
    is_partitioner: bool
