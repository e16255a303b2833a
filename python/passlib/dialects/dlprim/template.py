"""The files that a model was read from, kept so that unchanged parts can be written back as is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import passlib._core as _core
from passlib.dialects.dlprim.network import Network
from passlib.dialects.dlprim.types import Spec

__all__ = [
    "DLP_LENGTH_BYTES",
    "DLP_LONGEST_HEADER",
    "DLP_MAGIC",
    "NETWORK_SUFFIX",
    "WEIGHT_SUFFIXES",
    "DlpEntry",
    "DlpHeader",
    "Document",
    "Template",
    "WeightFile",
]

NETWORK_SUFFIX: Final = ".json"
WEIGHT_SUFFIXES: Final = (".dlp", ".h5", ".hdf5")

DLP_MAGIC: Final = b"DLPW"
DLP_LENGTH_BYTES: Final = 4
DLP_LONGEST_HEADER: Final = 64 << 20


@dataclass(frozen=True)
class Document:
    """A network file.

    Attributes
    ----------
    text : bytes
    root : JsonObject
        The parsed text.
    network : Network
        Sound if reading it found no errors.
    """

    text: bytes
    root: Any
    network: Network


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


@dataclass(frozen=True)
class Template:
    """The files that a model was read from.

    Attributes
    ----------
    document : Document
    graph : _core.Graph
        The graph of the network, which is never modified.
    weights : WeightFile or None
        None if there was no weight file.
    """

    document: Document
    graph: _core.Graph
    weights: WeightFile | None
