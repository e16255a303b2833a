"""Weight files: where they stand, and what was in the one that a model was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from passlib.families.dlprim.types import Spec

NETWORK_SUFFIX: Final = ".json"
WEIGHT_SUFFIXES: Final = (".dlp", ".h5", ".hdf5")

DLP_MAGIC: Final = b"DLPW"
DLP_LENGTH_BYTES: Final = 4
DLP_LONGEST_HEADER: Final = 64 << 20


@dataclass(frozen=True)
class DlpEntry:
    """Type, shape and position of one tensor in a .dlp file; ``start`` and ``size`` in bytes."""

    spec: Spec
    start: int
    size: int


@dataclass(frozen=True)
class DlpHeader:
    """The header of a .dlp file: ``{"tensors": {name: {"dtype", "shape", "start", "size"}}}``.

    The file begins with ``DLPW`` and the length of the header as four bytes, most significant
    first. Positions count from the end of the header; elements are little-endian.

    Attributes
    ----------
    text : bytes
    entries : mapping of str to DlpEntry
    """

    text: bytes
    entries: Mapping[str, DlpEntry]


@dataclass(frozen=True)
class WeightFile:
    """The format of a weight file.

    Attributes
    ----------
    kind : str
    suffix : str
    header : DlpHeader or None
        Of a .dlp file that was read.
    order : tuple of str
        Names of the parameters, in the order of the file.
    """

    kind: Literal["dlp", "h5"] = "dlp"
    suffix: str = ".dlp"
    header: DlpHeader | None = None
    order: tuple[str, ...] = ()
