"""Loaded libraries."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import passlib._core as _core
from passlib.library.declared import PassNames

MXNET_VERSION: Final = 10901
"""The version that ``initialize`` gets by default: that of the MXNet that passlib follows."""

_STANDARD: Final = "libpasslib_passes.so"


def standard_path() -> Path:
    """Return the path of the library of standard passes, which is installed with passlib."""
    return Path(_core.__file__).with_name(_STANDARD)


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
    passes : PassNames
        Names of the passes that the library registered, in its order; ``passes[name]`` is what a
        pass declares.
    partitioners, ops : tuple of str
        Names that the library registered, in its order.

    Examples
    --------
    >>> import passlib as pl
    >>> library = pl.library.load_standard()
    >>> library.abi_version, len(library.sha256)
    (11, 64)
    >>> "removeDeadNodes" in library.passes
    True
    """

    path: str
    sha256: str
    abi_version: int
    passes: PassNames
    partitioners: tuple[str, ...]
    ops: tuple[str, ...]
    core: _core.Library = field(repr=False, compare=False)

    @property
    def handover(self) -> str:
        """How passes and partitioners get their graph.

        ``"flat"``: as arrays of plain structs; ``"json"``: as text, which MXNet's header reads and
        which takes longer.
        """
        return self.core.handover
