"""Arrays with MXNet's names and methods, held in NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passlib.arrays import BaseSparseNDArray, CSRNDArray, NDArray, RowSparseNDArray
from passlib.arrays.creation import arange, array, empty, full, ones, zeros
from passlib.mxnet.nd import control, elementwise, functions, sampling, sparse
from passlib.mxnet.nd.creation import (
    eye,
    fill_element_0index,
    from_dlpack,
    from_numpy,
    histogram,
    imdecode,
    linspace,
    onehot_encode,
    to_dlpack_for_read,
    to_dlpack_for_write,
)
from passlib.mxnet.nd.files import load, load_frombuffer, save
from passlib.mxnet.nd.functions import CachedOp
from passlib.mxnet.nd.methods import METHODS, SPARSE_METHODS
from passlib.mxnet.nd.operators import operator_names
from passlib.mxnet.nd.shaping import (
    concatenate,
    get_indexing_dispatch_code,
    get_oshape_of_gather_nd_op,
    indexing_key_expand_implicit_axes,
    moveaxis,
    split_v2,
)
from passlib.mxnet.schema.calls import Namespace
from passlib.mxnet.training import NUMPY_MODULES, modules

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "CachedOp",
    "NDArray",
    "RowSparseNDArray",
    "arange",
    "array",
    "concatenate",
    "empty",
    "eye",
    "fill_element_0index",
    "from_dlpack",
    "from_numpy",
    "full",
    "get_indexing_dispatch_code",
    "get_oshape_of_gather_nd_op",
    "histogram",
    "imdecode",
    "indexing_key_expand_implicit_axes",
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

_OWN: dict[str, dict[str, Callable[..., Any]]] = {
    "contrib": {
        **control.FUNCTIONS,
        "edge_id": sparse.edge_id,
        "uniform": sampling.FUNCTIONS["uniform"],
    },
    "op": {"CachedOp": CachedOp},
    "random": {**sampling.FUNCTIONS, "NDArray": NDArray},
}
"""The functions of a namespace that are no operators."""

# passlib.arrays declares the class; methods that apply operators need the runtime above it.
for _name, _method in METHODS.items():
    setattr(NDArray, _name, _method)
for _name, _method in SPARSE_METHODS.items():
    setattr(BaseSparseNDArray, _name, _method)


def waitall() -> None:
    """Do nothing: passlib computes synchronously.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.waitall()
    """


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in NUMPY_MODULES:
        return modules[name]
    if name in functions.SPACES:
        space = functions.SPACES[name]
        return Namespace("nd", space, functions.find, operator_names, _OWN.get(name))
    if name in elementwise.FUNCTIONS:
        return elementwise.FUNCTIONS[name]
    return functions.find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *operator_names(), *elementwise.FUNCTIONS, *functions.SPACES})
