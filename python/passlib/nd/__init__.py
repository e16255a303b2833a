"""Arrays with MXNet's names and methods, held in NumPy's memory."""

from __future__ import annotations

from typing import Any

from passlib.arrays import BaseSparseNDArray, CSRNDArray, NDArray, RowSparseNDArray
from passlib.arrays.creation import arange, array, empty, full, ones, zeros
from passlib.dialects.mxnet.schema.namespaces import Namespace
from passlib.nd import functions, sampling, sparse
from passlib.nd.files import load, load_frombuffer, save

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
    """Do nothing: passlib computes synchronously."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in functions.SPACES:
        own = sampling.FUNCTIONS if name == "random" else None
        space = functions.SPACES[name]
        return Namespace("nd", space, functions.find, functions.operator_names, own)
    return functions.find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *functions.operator_names()})
