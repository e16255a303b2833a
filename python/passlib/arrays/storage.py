"""MXNet's storage of sparse arrays, and the checks that it is consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

ROW_SPARSE: Final = "row_sparse"
CSR: Final = "csr"


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse array in parts.

    Parameters
    ----------
    stype : str
        `ROW_SPARSE`: ``data[i]`` is the row ``indices[i]``; all other rows are zero.
        `CSR`: row ``r`` of a matrix holds ``data[indptr[r]:indptr[r + 1]]`` in the columns
        ``indices[indptr[r]:indptr[r + 1]]``.
    shape : tuple of int
        Shape of the whole array.
    data : numpy.ndarray
        Shape ``(n, *shape[1:])`` for rows, ``(n,)`` for a matrix.
    indices : numpy.ndarray
        Integers, shape ``(n,)``.
    indptr : numpy.ndarray, optional
        Integers, shape ``(shape[0] + 1,)``; for `CSR` only.
    """

    stype: str
    shape: tuple[int, ...]
    data: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    indptr: np.ndarray[Any, Any] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        dtype: np.dtype[Any] = self.data.dtype
        return dtype

    def check(self) -> None:
        """Check that the parts fit together and all indices are in range.

        Raises `ValueError` if the parts do not fit together; the message states which.
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
