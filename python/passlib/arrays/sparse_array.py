"""The two kinds of sparse arrays that .params files hold, and their storage."""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any, Final, TypeAlias

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.arrays.context import Context, require_host
from passlib.arrays.ndarray import KERNELS, NDArray, Placed, combine, register_compression
from passlib.errors import PasslibError, UnsupportedError

ROW_SPARSE: Final = "row_sparse"
CSR: Final = "csr"


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse array in parts."""

    stype: str
    """`ROW_SPARSE`: ``data[i]`` is the row ``indices[i]``; all other rows are zero. `CSR`: row
    ``r`` of a matrix holds ``data[indptr[r]:indptr[r + 1]]`` in the columns
    ``indices[indptr[r]:indptr[r + 1]]``."""
    shape: tuple[int, ...]
    """Shape of the whole array."""
    data: np.ndarray[Any, Any]
    """Shape ``(n, *shape[1:])`` for rows, ``(n,)`` for a matrix."""
    indices: np.ndarray[Any, Any]
    """Integers, shape ``(n,)``."""
    indptr: np.ndarray[Any, Any] | None = None
    """Integers, shape ``(shape[0] + 1,)``; for `CSR` only."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        dtype: np.dtype[Any] = self.data.dtype
        return dtype

    def check(self) -> None:
        """Check that the parts fit together and all indices are in range.

        Raises `ValueError`, which states the parts that do not.
        """
        count = self.data.shape[0] if self.data.ndim else -1
        if self.indices.dtype.kind not in "iu" or self.indices.shape != (count,):
            raise ValueError(
                f"its indices are {self.indices.dtype}{list(self.indices.shape)}; "
                f"data of shape {list(self.data.shape)} requires integers of shape [{count}]"
            )
        if self.stype == ROW_SPARSE:
            if not self.shape or self.data.shape[1:] != self.shape[1:]:
                raise ValueError(
                    f"its rows have the shape {list(self.data.shape[1:])}, "
                    f"those of the whole array {list(self.shape[1:])}"
                )
            _require_range(self.indices, self.shape[0], "row")
        else:
            self._check_csr(count)

    def _check_csr(self, count: int) -> None:
        if len(self.shape) != 2 or self.data.ndim != 1:
            raise ValueError(
                f"csr is for matrices; its shape is {list(self.shape)}, "
                f"that of its data {list(self.data.shape)}"
            )
        rows, columns = self.shape
        pointers = self.indptr
        if pointers is None or pointers.dtype.kind not in "iu" or pointers.shape != (rows + 1,):
            found = "absent" if pointers is None else f"{pointers.dtype}{list(pointers.shape)}"
            raise ValueError(f"its indptr is {found}; it must hold {rows + 1} integers")
        if pointers[0] != 0 or pointers[-1] != count or np.any(pointers[1:] < pointers[:-1]):
            raise ValueError(f"its indptr does not rise from 0 to {count}")
        _require_range(self.indices, columns, "column")


Array: TypeAlias = "np.ndarray[Any, Any] | Sparse"
"""The value of one name in a weight file."""


def _require_range(indices: np.ndarray[Any, Any], end: int, what: str) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= end):
        raise ValueError(
            f"its {what} indices run from {indices.min()} to {indices.max()}; it has {end} {what}s"
        )


_KEEPING: Final = ("add", "sub", "mul")
_REFLECTED: Final = ("add", "sub", "mul", "truediv", "mod", "pow")


class SparseArithmetic:
    """Operators; the other operand is an array, dense or sparse, or a number."""

    stype: str

    def __neg__(self: Any) -> Any:
        return self * -1

    def __abs__(self: Any) -> Any:
        return _stored_as(self.stype, self, np.abs(self.asnumpy()))


def _stored_as(stype: str, like: Any, result: np.ndarray[Any, Any]) -> Any:
    dense = result.view(NDArray)
    dense._context = like.context
    return dense.tostype(stype)


def _storage(name: str, left: Any, right: Any) -> str:
    """Return the storage type of a result whose first operand is sparse, or the second a number."""
    if isinstance(right, Number):
        with np.errstate(all="ignore"):
            of_zero = combine(KERNELS[name], np.zeros(1, left.dtype), right)
        return left.stype if not of_zero.any() else "default"
    other = getattr(right, "stype", "default")
    if (other == left.stype and name in _KEEPING) or (other == "default" and name == "mul"):
        return str(left.stype)
    return "default"


def _forward(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = other.asnumpy() if hasattr(other, "asnumpy") else other
        if not isinstance(operand, (np.ndarray, Number)):
            return NotImplemented
        result = combine(KERNELS[name], self.asnumpy(), operand)
        stype = _storage(name, self, other) if result.shape == self.shape else "default"
        return _stored_as(stype, self, result)

    return method


def _backward(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, NDArray):
            return _stored_as(
                "default", self, combine(KERNELS[name], other.asnumpy(), self.asnumpy())
            )
        if not isinstance(other, Number):
            return NotImplemented
        result = combine(KERNELS[name], other, self.asnumpy())
        stype = _storage(name, self, other) if name in ("add", "mul") else "default"
        return _stored_as(stype, self, result)

    return method


for _name in KERNELS:
    setattr(SparseArithmetic, f"__{_name}__", _forward(_name))
for _name in _REFLECTED:
    setattr(SparseArithmetic, f"__r{_name}__", _backward(_name))


class BaseSparseNDArray(SparseArithmetic, Placed["BaseSparseNDArray"]):
    """Base class of both kinds of sparse arrays.

    Parameters
    ----------
    parts : Sparse
        Kept, not copied.

    Raises
    ------
    ValueError
        The parts do not fit together.

    Examples
    --------
    >>> import passlib as mx
    >>> array = mx.nd.zeros((2, 3), stype="csr")
    >>> isinstance(array, mx.nd.BaseSparseNDArray), array.stype
    (True, 'csr')
    """

    # NumPy's operators would treat this as a Python object; refuse instead.
    __array_ufunc__ = None

    __hash__ = object.__hash__

    def __init__(self, parts: Sparse, context: Context | None = None) -> None:
        parts.check()
        self._parts = parts
        self._context = require_host(context, f"a {parts.stype} array")

    @property
    def parts(self) -> Sparse:
        """The arrays that this one consists of, as plain NumPy."""
        return self._parts

    @property
    def stype(self) -> str:  # type: ignore[override]
        """MXNet's storage type."""
        return self._parts.stype

    @property
    def _aux_types(self) -> list[type[np.generic]]:
        """Element types of the index arrays, the row pointers first."""
        found = [self._parts.indptr, self._parts.indices]
        return [array.dtype.type for array in found if array is not None]

    @property
    def _num_aux(self) -> int:
        """The number of index arrays."""
        return len(self._aux_types)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return self._parts.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._parts.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._parts.dtype

    @property
    def data(self) -> NDArray:
        """The stored values."""
        return self._parts.data.view(NDArray)

    @property
    def indices(self) -> NDArray:
        """The rows (row_sparse) or the columns (csr) of the stored values."""
        return self._parts.indices.view(NDArray)

    @property
    def size(self) -> int:
        """The number of elements, those that are not stored included."""
        return math.prod(self.shape)

    def asscalar(self) -> Any:
        """Return the only element as a number of Python.

        Raises
        ------
        ValueError
            There is not exactly one.
        """
        return self.asnumpy().item()

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"a {self.stype} array can only be made dense by a copy")
        dense = self.asnumpy()
        return dense if dtype is None else dense.astype(dtype)

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"\n<{type(self).__name__} {shape} @{self._context}>"

    def asnumpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the whole array, zeros included.

        Returns
        -------
        numpy.ndarray
            If two values are stored for one element, the last one counts, as in MXNet.

        Raises
        ------
        UnsupportedError
            The whole array needs more memory than there is.
        """
        _core.check_files((self,))
        try:
            dense = np.zeros(self.shape, self.dtype)
        except (MemoryError, ValueError) as error:  # the latter where no address reaches its end
            message = (
                f"a sparse array of the shape {self.shape} is too large as a dense one: that takes "
                f"{math.prod(self.shape) * self.dtype.itemsize:,} bytes"
            )
            raise UnsupportedError(message) from error
        if self._parts.indptr is None:
            dense[self._parts.indices] = self._parts.data
        else:
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self._parts.indptr.astype(np.int64)))
            dense[rows, self._parts.indices] = self._parts.data
        return dense

    def replace(self, source: Any) -> None:
        """Take over the elements of an array of the same shape, in this array's element type."""
        dense = np.asarray(source).view(NDArray)
        stored = source if isinstance(source, type(self)) else dense.tostype(self.stype)
        self._parts = stored.astype(self.dtype).parts

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis and (not isinstance(key, slice) or key != slice(None)):
            raise ValueError(
                f"only all elements of a {self.stype} array can be set: array[:] = ..."
            )
        given = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
        self.replace(np.broadcast_to(given, self.shape).astype(self.dtype))

    def check_format(self, full_check: bool = True) -> None:
        """Check that the parts fit together; ValueError says what does not."""
        del full_check
        self._parts.check()

    def asscipy(self) -> Any:
        """Raise an error unless this is a matrix in compressed rows; see `CSRNDArray.asscipy`."""
        raise UnsupportedError(f"SciPy has no arrays of the kind {self.stype}")

    def tostype(self, stype: str) -> NDArray | BaseSparseNDArray:
        """Return this array in another storage type; see `NDArray.tostype`."""
        if stype == self.stype:
            return self
        dense = self.asnumpy().view(NDArray)
        dense._context = self._context
        stored: NDArray | BaseSparseNDArray = dense.tostype(stype)
        return stored

    def astype(self, dtype: Any) -> BaseSparseNDArray:
        """Convert the stored values.

        Returns
        -------
        RowSparseNDArray or CSRNDArray
            A copy.
        """
        kind = np.float32 if dtype is None else dtype
        return self._rebuilt(dtypes.as_dtype(kind), self._context)

    def copy(self) -> BaseSparseNDArray:
        """Copy all parts."""
        return self._rebuilt(self.dtype, self._context)

    def _copy_to(self, context: Context) -> BaseSparseNDArray:
        return self._rebuilt(self.dtype, context)

    def _rebuilt(self, dtype: np.dtype[Any], context: Context) -> BaseSparseNDArray:
        _core.check_files((self,))
        old = self._parts
        pointers = None if old.indptr is None else old.indptr.copy()
        parts = Sparse(old.stype, old.shape, old.data.astype(dtype), old.indices.copy(), pointers)
        return type(self)(parts, context)


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which only some rows are stored; all others are zero.

    Examples
    --------
    >>> import passlib as mx
    >>> rows = mx.nd.array([[0, 0], [1, 2]]).tostype("row_sparse")
    >>> rows.indices.asnumpy(), rows.data.asnumpy()
    (array([1]), array([[1., 2.]], dtype=float32))
    """

    def __getitem__(self, key: Any) -> RowSparseNDArray:
        if not isinstance(key, slice) or key != slice(None):
            raise ValueError("of a row_sparse array only [:] can be taken; make it dense first")
        return self

    def retain(self, indices: Any) -> RowSparseNDArray:
        """Return the array with some rows only.

        Parameters
        ----------
        indices : array of int
            The rows that stay.
        """
        old = self._parts
        kept = np.isin(old.indices, np.asarray(indices).astype(np.int64))
        parts = Sparse(old.stype, old.shape, old.data[kept], old.indices[kept])
        return RowSparseNDArray(parts, self._context)


class CSRNDArray(BaseSparseNDArray):
    """A matrix in compressed rows.

    Examples
    --------
    >>> import passlib as mx
    >>> matrix = mx.nd.array([[0, 1], [0, 0]]).tostype("csr")
    >>> matrix.indices.asnumpy(), matrix.indptr.asnumpy()
    (array([1]), array([0, 1, 1]))
    """

    def __getitem__(self, key: Any) -> CSRNDArray:
        if isinstance(key, slice):
            start, stop, step = key.indices(self.shape[0])
            if step != 1:
                raise ValueError(
                    f"rows of a csr matrix are taken one after the other, not by {step}"
                )
        elif isinstance(key, (int, np.integer)):
            start = operator.index(key) + (self.shape[0] if key < 0 else 0)
            stop = start + 1
            if not 0 <= start < self.shape[0]:
                raise IndexError(f"row {key} of a matrix with {self.shape[0]} rows")
        else:
            raise ValueError("of a csr matrix only rows can be taken: matrix[i] or matrix[i:j]")
        old = self._parts
        pointers = self.indptr.asnumpy()[start : max(stop, start) + 1]
        inside = slice(int(pointers[0]), int(pointers[-1]))
        shape = (len(pointers) - 1, self.shape[1])
        parts = Sparse(
            old.stype, shape, old.data[inside], old.indices[inside], pointers - pointers[0]
        )
        return CSRNDArray(parts, self._context)

    def asscipy(self) -> Any:
        """Return the matrix as one of SciPy.

        Raises
        ------
        PasslibError
            The package scipy is not installed.
        """
        try:
            scipy: Any = importlib.import_module("scipy.sparse")
        except ModuleNotFoundError as error:
            message = "this needs the Python package 'scipy'; install it with: pip install scipy"
            raise PasslibError(message) from error
        old = self._parts
        return scipy.csr_matrix((old.data, old.indices, old.indptr), old.shape)

    @property
    def indptr(self) -> NDArray:
        """The positions in `data` and `indices` where each row begins, and the last one ends."""
        pointers = self._parts.indptr
        assert pointers is not None  # Sparse.check() requires it
        return pointers.view(NDArray)


def wrap(parts: Sparse, context: Context | None = None) -> BaseSparseNDArray:
    """Make an array of the class for its storage type.

    Raises `ValueError` if the parts do not fit together.
    """
    return (RowSparseNDArray if parts.stype == ROW_SPARSE else CSRNDArray)(parts, context)


def from_dense(array: np.ndarray[Any, Any], stype: str) -> BaseSparseNDArray:
    """Make a sparse array of a dense one, on its context if it has one.

    Raises `ValueError` if the storage type is unknown, or does not support this shape.
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
    raise ValueError(f"unknown storage type {stype!r}; the types are default, row_sparse and csr")


register_compression(from_dense)
