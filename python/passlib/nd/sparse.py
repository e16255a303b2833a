"""Functions that make sparse arrays: MXNet's ``nd.sparse``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import Context
from passlib.arrays.sparse_array import BaseSparseNDArray, CSRNDArray, RowSparseNDArray
from passlib.arrays.storage import CSR, ROW_SPARSE, Sparse

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "csr_matrix",
    "row_sparse_array",
]


def csr_matrix(
    parts: tuple[Any, Any, Any],
    shape: tuple[int, int] | None = None,
    ctx: Context | None = None,
    dtype: Any = None,
) -> CSRNDArray:
    """Make a matrix in compressed rows.

    Parameters
    ----------
    parts : (data, indices, indptr)
        See `CSRNDArray`.
    shape : (int, int), optional
        By default the smallest one that contains all indices.
    ctx : Context, optional
    dtype : dtype-like, optional
        By default the type of ``data`` if it is an array, else float32.

    Returns
    -------
    CSRNDArray

    Raises
    ------
    ValueError
        The parts do not fit together.
    """
    data, indices, pointers = parts
    columns = np.array(indices, np.int64)
    rows = np.array(pointers, np.int64)
    if shape is None:
        shape = (max(rows.size - 1, 0), int(columns.max()) + 1 if columns.size else 0)
    return CSRNDArray(Sparse(CSR, tuple(shape), _values(data, dtype), columns, rows), ctx)


def row_sparse_array(
    parts: tuple[Any, Any],
    shape: Sequence[int] | None = None,
    ctx: Context | None = None,
    dtype: Any = None,
) -> RowSparseNDArray:
    """Make an array that stores only some of its rows, of ``(data, indices)``.

    Other parameters and errors are as of `csr_matrix`; see also `RowSparseNDArray`.
    """
    data, indices = parts
    rows = np.array(indices, np.int64)
    values = _values(data, dtype)
    if shape is None:
        shape = (int(rows.max()) + 1 if rows.size else 0, *values.shape[1:])
    return RowSparseNDArray(Sparse(ROW_SPARSE, tuple(shape), values, rows), ctx)


def _values(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    if dtype is None:
        dtype = data.dtype if isinstance(data, np.ndarray) else np.float32
    return np.array(data, dtypes.as_dtype(dtype), subok=False)
