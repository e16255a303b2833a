"""The weight file next to a graph: TVM's format or MXNet's."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

from passlib.dialects.weights import files
from passlib.dialects.weights.params import split_names
from passlib.families.nnvm.reading import tvm_params
from passlib.files.regular import memory_named

WEIGHTS_SUFFIX: Final = ".params"
"""Suffix of the weight file next to ``name.json``."""


class Weights(NamedTuple):
    """The content of a weight file.

    Attributes
    ----------
    args, aux : dict of str to array
    names : tuple of str
        Names in the file, in its order.
    of_mxnet : bool
        Whether the file is one of MXNet's.
    """

    args: dict[str, Any]
    aux: dict[str, Any]
    names: tuple[str, ...]
    of_mxnet: bool


def weights_path(path: Path) -> Path | None:
    """Return the weight file next to a graph; None if there is none."""
    weights = path.with_suffix(WEIGHTS_SUFFIX)
    # What is neither a file nor a folder is named when it is opened.
    return weights if weights != path and weights.exists() and not weights.is_dir() else None


def read_weights(path: Path, states: Collection[str]) -> Weights:
    """Read a weight file of either format.

    Raises `FormatError` if the file is damaged; `UnsupportedError` if NumPy lacks an element type
    of the file.

    Parameters
    ----------
    states : collection of str
        The graph's auxiliary states.
    """
    auxiliary = frozenset(states)
    if tvm_params.is_params(path):
        with memory_named(path):
            named = tvm_params.read(path)
        args = {name: array for name, array in named.items() if name not in auxiliary}
        aux = {name: array for name, array in named.items() if name in auxiliary}
        return Weights(args, aux, tuple(named), of_mxnet=False)
    parts = files.load_parts(path)
    return Weights(*split_names(parts, str(path), auxiliary), tuple(parts), of_mxnet=True)


def bytes_left(path: Path) -> int:
    """Return how many bytes a weight file has after its arrays; errors are those of reading it."""
    if not tvm_params.is_params(path):
        return files.bytes_left(path)
    with memory_named(path):
        return tvm_params.bytes_left(path)
