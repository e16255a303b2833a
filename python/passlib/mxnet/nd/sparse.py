"""Functions that create sparse arrays: MXNet's ``nd.sparse``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib.arrays import creation, dtypes
from passlib.arrays.context import Context
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import (
    CSR,
    ROW_SPARSE,
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    Sparse,
)
from passlib.mxnet.nd import elementwise, operators


def csr_matrix(
    arg1: Any, shape: tuple[int, int] | None = None, ctx: Context | None = None, dtype: Any = None
) -> CSRNDArray:
    """Create a matrix in compressed rows.

    Parameters
    ----------
    arg1 : (data, indices, indptr), (data, (row, column)), (int, int) or array-like
        The parts, see `CSRNDArray`; numbers with their places; a shape, for a matrix of zeros; or
        a matrix, dense, sparse or of SciPy.
    shape : (int, int), optional
        By default the smallest one that contains all indices.
    dtype : dtype-like, optional
        By default that of the array with the numbers, else float32.

    Raises
    ------
    ValueError
        The parts do not fit together, or the matrix has another shape.
    """
    if not isinstance(arg1, tuple):
        matrix: CSRNDArray = _of_array(arg1, CSR, shape, ctx, dtype)
        return matrix
    if len(arg1) == 2 and all(isinstance(size, (int, np.integer)) for size in arg1):
        return csr_matrix(np.zeros(arg1), shape, ctx, dtype or np.float32)
    if len(arg1) == 2:
        return _of_places(arg1[0], arg1[1], shape, ctx, dtype)
    data, indices, pointers = arg1
    columns = np.array(indices, np.int64)
    rows = np.array(pointers, np.int64)
    if shape is None:
        shape = (max(rows.size - 1, 0), int(columns.max()) + 1 if columns.size else 0)
    return CSRNDArray(Sparse(CSR, tuple(shape), _values(data, dtype), columns, rows), ctx)


def row_sparse_array(
    arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None, dtype: Any = None
) -> RowSparseNDArray:
    """Create an array that stores only some of its rows.

    Parameters
    ----------
    arg1 : (data, indices), tuple of int or array-like
        The parts, see `RowSparseNDArray`; a shape, for an array of zeros; or an array.
    shape, ctx, dtype
        As of `csr_matrix`, as are errors.
    """
    if not isinstance(arg1, tuple):
        made: RowSparseNDArray = _of_array(arg1, ROW_SPARSE, shape, ctx, dtype)
        return made
    if all(isinstance(size, (int, np.integer)) for size in arg1):
        return row_sparse_array(np.zeros(arg1), shape, ctx, dtype or np.float32)
    data, indices = arg1
    rows = np.array(indices, np.int64)
    values = _values(data, dtype)
    if shape is None:
        shape = (int(rows.max()) + 1 if rows.size else 0, *values.shape[1:])
    return RowSparseNDArray(Sparse(ROW_SPARSE, tuple(shape), values, rows), ctx)


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Copy a sparse array, or a matrix of SciPy in compressed rows, into a new one.

    Raises
    ------
    ValueError
        The source is dense; `passlib.nd.array` takes it.
    """
    if isinstance(source_array, BaseSparseNDArray):
        return creation.array(source_array, ctx, dtype)
    if hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, None, ctx, dtype)
    raise ValueError(f"{type(source_array).__name__} is no sparse array; use passlib.nd.array")


def zeros(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Create an array of zeros of a storage type: default, csr or row_sparse."""
    return creation.zeros(shape, ctx, dtype, stype)


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Create an array of a storage type that stores nothing; a dense one is uninitialized."""
    return (
        creation.empty(shape, ctx, dtype) if stype == "default" else zeros(stype, shape, ctx, dtype)
    )


def edge_id(data: CSRNDArray, u: Any, v: Any) -> NDArray:
    """Return the stored elements in rows ``u`` and columns ``v``, and -1 where none is stored.

    Parameters
    ----------
    data : CSRNDArray
        A graph: the element in row u and column v is the number of the edge from u to v.
    u, v : array
        As many rows as columns.

    Raises
    ------
    IndexError
        The matrix does not have a row.

    Examples
    --------
    >>> import passlib as mx
    >>> graph = mx.nd.array([[0, 5], [0, 0]]).tostype("csr")
    >>> mx.nd.contrib.edge_id(graph, mx.nd.array([0, 1]), mx.nd.array([1, 1])).asnumpy()
    array([ 5., -1.], dtype=float32)
    """
    pointers, columns = np.asarray(data.indptr), np.asarray(data.indices)
    found = np.full(np.shape(u), -1, data.dtype)
    wanted = zip(np.asarray(u).astype(int), np.asarray(v).astype(int), strict=True)
    for place, (row, column) in enumerate(wanted):
        if not 0 <= row < data.shape[0]:
            raise IndexError(f"the matrix has {data.shape[0]} rows, and no row {row}")
        start = pointers[row]
        stored = np.flatnonzero(columns[start : pointers[row + 1]] == column)
        if stored.size:
            found[place] = np.asarray(data.data)[start + stored[0]]
    made: NDArray = creation.array(found, data.context, data.dtype)
    return made


def retain(data: RowSparseNDArray, indices: Any) -> RowSparseNDArray:
    """Return a row_sparse array with some rows only; see `RowSparseNDArray.retain`."""
    return data.retain(indices)


gs_retain = retain


def _of_array(
    given: Any, stype: str, shape: Sequence[int] | None, ctx: Context | None, dtype: Any
) -> Any:
    if hasattr(given, "tocsr"):  # SciPy's
        rows = given.tocsr()
        return csr_matrix((rows.data, rows.indices, rows.indptr), rows.shape, ctx, dtype)
    kind = given.dtype if dtype is None and hasattr(given, "dtype") else dtype
    dense = creation.array(np.asarray(given), ctx, kind)
    if shape is not None and dense.shape != tuple(shape):
        raise ValueError(f"the array has shape {dense.shape}, not {tuple(shape)}")
    return dense.tostype(stype)


def _of_places(
    data: Any,
    places: tuple[Any, Any],
    shape: tuple[int, int] | None,
    ctx: Context | None,
    dtype: Any,
) -> CSRNDArray:
    rows, columns = (np.array(each, np.int64) for each in places)
    values = _values(data, dtype)
    sizes = shape or tuple(int(each.max()) + 1 if each.size else 0 for each in (rows, columns))
    if rows.size and (rows.min() < 0 or rows.max() >= sizes[0]):
        raise ValueError(
            f"its row indices run from {rows.min()} to {rows.max()}; it has {sizes[0]}"
        )
    order = np.lexsort((columns, rows))
    pointers = np.zeros(sizes[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=sizes[0]), out=pointers[1:])
    parts = Sparse(CSR, tuple(sizes), values[order], columns[order], pointers)
    return CSRNDArray(parts, ctx)


def _values(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    if dtype is None:
        dtype = data.dtype if isinstance(data, np.ndarray) else np.float32
    return np.array(data, dtypes.as_dtype(dtype), subok=False)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in elementwise.FUNCTIONS:
        return elementwise.FUNCTIONS[name]
    try:
        return operators.find(name, "sparse")
    except AttributeError:
        return operators.find(name)
