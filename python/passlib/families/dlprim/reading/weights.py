"""Reading the weights of a network, from either kind of file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passlib.errors import FormatError, GraphError, listed
from passlib.families.dlprim.network import DLP_MAGIC, Spec, WeightFile
from passlib.families.dlprim.reading import dlp, h5
from passlib.files.regular import open_regular


def read_weights(
    path: Path, wanted: Mapping[str, Spec], *, allow_missing: bool = False
) -> tuple[dict[str, Any], WeightFile]:
    """Read a weight file, whatever its suffix.

    Raises `FormatError` if the file is damaged, or neither .dlp nor .h5; `GraphError` if a
    parameter is missing, or has another shape or type.

    Parameters
    ----------
    wanted : mapping of str to Spec
        The parameters of the network.
    allow_missing : bool
        Accept a file that lacks some of them.

    Returns
    -------
    arrays : dict of str to numpy.ndarray
        Everything in the file, in its order.
    """
    with open_regular(path) as file:
        magic = file.read(4)
    suffix = path.suffix
    if magic == DLP_MAGIC:
        arrays, header = dlp.read(path)
        weights = WeightFile("dlp", suffix or ".dlp", header, tuple(arrays))
    elif magic == h5.MAGIC:
        arrays = h5.read(path)
        weights = WeightFile("h5", suffix or ".h5", None, tuple(arrays))
    else:
        raise FormatError(f"{path}: neither a .dlp nor an HDF5 file: it begins with {magic!r}")
    missing = [name for name in wanted if name not in arrays]
    if missing and not allow_missing:
        raise GraphError(
            f"{path}: {len(missing)} of the network's {len(wanted)} parameters are missing "
            f"({listed(missing, 5)}); pass allow_missing=True to load the model without them"
        )
    for name, spec in wanted.items():
        array = arrays.get(name)
        if array is not None and (array.shape, array.dtype.name) != (spec.shape, spec.dtype):
            found = Spec(array.dtype.name, array.shape)
            raise GraphError(f"{path}: parameter {name!r} is {found}, the network needs {spec}")
    return arrays, weights
