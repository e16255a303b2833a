"""The weight file of a network: which one it is, by magic, and reading and writing either kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from passlib.dialects.dlprim import dlp, h5
from passlib.dialects.dlprim.types import Spec
from passlib.errors import FormatError, GraphError

__all__ = ["SUFFIXES", "Weights", "beside", "read_weights", "write_weights"]

Kind = Literal["dlp", "h5"]

SUFFIXES: tuple[str, ...] = (".dlp", ".h5", ".hdf5")


@dataclass(frozen=True)
class Weights:
    """How a weight file was written.

    Attributes
    ----------
    kind : str
    suffix : str
    header : dlp.Header or None
        That of a .dlp file.
    order : tuple of str
        The names in the file.
    """

    kind: Kind = "dlp"
    suffix: str = ".dlp"
    header: dlp.Header | None = None
    order: tuple[str, ...] = ()


def beside(network: Path) -> Path | None:
    """Find the weight file that has the name of a network and stands beside it."""
    for suffix in SUFFIXES:
        path = network.with_suffix(suffix)
        if path.is_file():
            return path
    return None


def read_weights(
    path: Path, wanted: Mapping[str, Spec], *, allow_missing: bool = False
) -> tuple[dict[str, Any], Weights]:
    """Read a weight file, whatever it is called.

    Parameters
    ----------
    path : Path
    wanted : mapping of str to Spec
        The parameters of the network.
    allow_missing : bool
        Accept that the file lacks some.

    Returns
    -------
    arrays : dict of str to numpy.ndarray
        Everything in the file, in its order.
    weights : Weights

    Raises
    ------
    FormatError
        The file is damaged, or neither .dlp nor .h5.
    GraphError
        A parameter is missing, or has another shape or type.
    """
    with path.open("rb") as file:
        magic = file.read(4)
    header: dlp.Header | None = None
    if magic == dlp.MAGIC:
        kind: Kind = "dlp"
        arrays, header = dlp.read(path)
    elif magic == h5.MAGIC:
        kind, arrays = "h5", h5.read(path)
    else:
        raise FormatError(f"{path}: is neither a .dlp nor an HDF5 file: it begins with {magic!r}")
    missing = [name for name in wanted if name not in arrays]
    if missing and not allow_missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise GraphError(
            f"{path}: parameter {shown} of the network is missing ({len(missing)} of "
            f"{len(wanted)}); give allow_missing=True to do without"
        )
    for name, spec in wanted.items():
        array = arrays.get(name)
        if array is not None and (array.shape, array.dtype.name) != (spec.shape, spec.dtype):
            found = Spec(array.dtype.name, array.shape)
            raise GraphError(f"{path}: parameter {name!r} is {found}, the network needs {spec}")
    suffix = path.suffix or f".{kind}"
    return arrays, Weights(kind, suffix, header, tuple(arrays))


def write_weights(path: Path, arrays: Mapping[str, Any], template: Weights) -> None:
    """Write a weight file of the same kind, parameters in the same order.

    Raises
    ------
    UnsupportedError
        The format has no place for an array.
    """
    known = [name for name in template.order if name in arrays]
    ordered = {name: arrays[name] for name in known}
    ordered.update({name: arrays[name] for name in arrays if name not in ordered})
    if template.kind == "dlp":
        dlp.write(path, ordered, template.header)
    else:
        h5.write(os.fspath(path), ordered)
