"""Arrays with MXNet's names and methods, in NumPy's memory."""

from __future__ import annotations

from typing import Any

from passlib._namespace import Namespace
from passlib.nd import sampling, sparse
from passlib.nd.creation import arange, array, empty, full, ones, zeros
from passlib.nd.files import load, load_frombuffer, save
from passlib.nd.ndarray import NDArray
from passlib.nd.sparse_array import BaseSparseNDArray, CSRNDArray, RowSparseNDArray

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "NDArray",
    "RowSparseNDArray",
    "arange",
    "array",
    "empty",
    "full",
    "load",
    "load_frombuffer",
    "ones",
    "save",
    "sparse",
    "waitall",
    "zeros",
]


def waitall() -> None:
    """Do nothing: passlib computes at once, so all is done."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    # It imports this package; the form "from passlib.nd import" would come back here.
    from passlib.nd.functions import SPACES, find, operator_names

    if name in SPACES:
        functions = sampling.FUNCTIONS if name == "random" else None
        return Namespace("nd", SPACES[name], find, operator_names, functions)
    return find(name)


def __dir__() -> list[str]:
    from passlib.nd.functions import operator_names

    return sorted({*globals(), *operator_names()})
