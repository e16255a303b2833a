"""Arrays as passlib holds them: element types, devices, dense and sparse storage."""

from __future__ import annotations

from typing import Any, Final

from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray, CSRNDArray, RowSparseNDArray
from passlib.files.optional import load_extensions

__all__ = ["OPERATORS", "BaseSparseNDArray", "CSRNDArray", "NDArray", "RowSparseNDArray"]

OPERATORS: Final = """
    abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort
    broadcast_axes broadcast_like cbrt ceil clip cos cosh degrees depth_to_space diag exp
    expm1 fix flip floor log log10 log1p log2 log_softmax max mean min nanprod nansum norm one_hot
    ones_like pad pick prod radians rcbrt reciprocal relu repeat reshape_like rint round rsqrt
    shape_array sigmoid sign sin sinh size_array slice slice_axis slice_like softmax softmin
    sort space_to_depth split sqrt square sum swapaxes take tan tanh tile topk trunc zeros_like
"""
"""Methods that are the operator of their name, with the array as its first input."""

_OTHERS: Final = """
    as_nd_ndarray as_np_ndarray attach_grad backward broadcast_to detach expand_dims flatten grad
    handle reshape slice_assign slice_assign_scalar split_v2 squeeze to_dlpack_for_read
    to_dlpack_for_write transpose writable
"""


class _Deferred:
    """A method that another room puts in the place of this one, when it is first used.

    Without it, an array of a process that has not used that room would have NumPy's methods.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, array: Any, owner: type) -> Any:
        load_extensions("passlib.array_methods")
        return getattr(owner if array is None else array, self._name)

    def __set__(self, array: Any, value: Any) -> None:
        load_extensions("passlib.array_methods")
        setattr(array, self._name, value)


for _class in (NDArray, BaseSparseNDArray):
    for _name in (*OPERATORS.split(), *_OTHERS.split()):
        setattr(_class, _name, _Deferred(_name))
setattr(BaseSparseNDArray, "T", _Deferred("T"))  # noqa: B010 (the type checker knows no such name)
