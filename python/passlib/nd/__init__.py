"""Arrays with MXNet's names and methods, held in NumPy's memory."""

from __future__ import annotations

from typing import Any

from passlib.arrays import BaseSparseNDArray, CSRNDArray, NDArray, RowSparseNDArray
from passlib.arrays.creation import arange, array, empty, full, ones, zeros
from passlib.dialects.mxnet.schema.namespaces import Namespace
from passlib.nd import control, elementwise, functions, sampling, sparse
from passlib.nd.creation import (
    eye,
    from_dlpack,
    from_numpy,
    histogram,
    imdecode,
    linspace,
    onehot_encode,
    to_dlpack_for_read,
    to_dlpack_for_write,
)
from passlib.nd.files import load, load_frombuffer, save
from passlib.nd.methods import METHODS, SPARSE_METHODS
from passlib.nd.operators import operator_names
from passlib.nd.shaping import concatenate, moveaxis, split_v2

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "NDArray",
    "RowSparseNDArray",
    "arange",
    "array",
    "concatenate",
    "empty",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "histogram",
    "imdecode",
    "linspace",
    "load",
    "load_frombuffer",
    "moveaxis",
    "onehot_encode",
    "ones",
    "save",
    "sparse",
    "split_v2",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "waitall",
    "zeros",
]

_OWN = {"contrib": control.FUNCTIONS, "random": sampling.FUNCTIONS}
"""The functions of a namespace that are no operators."""

# A low room declares the class; what applies operators to it is added here, above the runtime.
for _name, _method in METHODS.items():
    setattr(NDArray, _name, _method)
for _name, _method in SPARSE_METHODS.items():
    setattr(BaseSparseNDArray, _name, _method)


def waitall() -> None:
    """Do nothing: passlib computes synchronously."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in functions.SPACES:
        space = functions.SPACES[name]
        return Namespace("nd", space, functions.find, operator_names, _OWN.get(name))
    if name in elementwise.FUNCTIONS:
        return elementwise.FUNCTIONS[name]
    return functions.find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *operator_names(), *elementwise.FUNCTIONS, *functions.SPACES})
