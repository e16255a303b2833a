"""Making sparse arrays: MXNet's ``nd.sparse``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib import dtypes
from passlib.context import Context
from passlib.dialects.mxnet.storage import CSR, ROW_SPARSE, Sparse
from passlib.nd.sparse_array import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, wrap

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "csr_matrix",
    "from_dense",
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
        By default as small as the indices permit.
    ctx : Context, optional
    dtype : dtype-like, optional
        By default that of ``data`` where it is an array, else float32.

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
    """Make an array most of whose rows are zero.

    Parameters
    ----------
    parts : (data, indices)
        See `RowSparseNDArray`.
    shape : sequence of int, optional
        By default as small as the indices permit.
    ctx : Context, optional
    dtype : dtype-like, optional
        By default that of ``data`` where it is an array, else float32.

    Returns
    -------
    RowSparseNDArray

    Raises
    ------
    ValueError
        The parts do not fit together.
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


def from_dense(array: np.ndarray[Any, Any], stype: str) -> BaseSparseNDArray:
    """Store an array sparsely.

    Parameters
    ----------
    array : numpy.ndarray
    stype : {"row_sparse", "csr"}

    Returns
    -------
    RowSparseNDArray or CSRNDArray
        On the context of ``array`` if it has one.

    Raises
    ------
    ValueError
        No such storage type, or this shape cannot be stored so.
    """
    plain = np.asarray(array)
    context = getattr(array, "context", None)
    if stype == ROW_SPARSE and plain.ndim:
        rows = np.flatnonzero(np.any(plain.reshape(plain.shape[0], -1) != 0, axis=1))
        return wrap(Sparse(stype, plain.shape, plain[rows], rows.astype(np.int64)), context)
    if stype == CSR and plain.ndim == 2:
        rows, columns = np.nonzero(plain)
        pointers = np.zeros(plain.shape[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=plain.shape[0]), out=pointers[1:])
        parts = Sparse(stype, plain.shape, plain[rows, columns], columns.astype(np.int64), pointers)
        return wrap(parts, context)
    if stype in (ROW_SPARSE, CSR):
        raise ValueError(f"an array of shape {plain.shape} cannot be stored as {stype}")
    raise ValueError(f"unknown storage type {stype!r}; known are default, row_sparse and csr")
