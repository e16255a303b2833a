"""Arrays as passlib holds them: element types, devices, dense and sparse storage."""

from __future__ import annotations

from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray, CSRNDArray, RowSparseNDArray

__all__ = ["BaseSparseNDArray", "CSRNDArray", "NDArray", "RowSparseNDArray"]
