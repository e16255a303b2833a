"""Arrays as operators of libraries take and return them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import CSR, ROW_SPARSE, BaseSparseNDArray, Sparse, wrap

DENSE: Final = "default"
STORAGE: Final = (DENSE, ROW_SPARSE, CSR)
"""Storage types, each at the position that is its number in the ABI."""

_INDEX = np.dtype(np.int64)


class ArrayType(NamedTuple):
    """Element type, shape and storage type of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    stype: str = DENSE

    def dense(self) -> ArrayType:
        """Return the type of a dense array of the same shape and element type."""
        return self._replace(stype=DENSE)

    def column(self) -> tuple[int, int, tuple[int, ...]]:
        """Return it in the host's form: dtype code, storage type, shape."""
        return dtypes.code(self.dtype), STORAGE.index(self.stype), self.shape


def type_of(array: Any) -> ArrayType:
    """Return the type of a dense or sparse array."""
    return ArrayType(array.dtype, tuple(array.shape), getattr(array, "stype", DENSE))


class Lent:
    """Arrays lent to an operator for one call.

    The operator gets the memory of every array itself, so nothing is copied. An array that is not
    C-contiguous or not in native byte order is lent as a copy; `take_back` copies the
    operator's writes back.

    Parameters
    ----------
    arrays : sequence of array
    mutated : sequence of int
        Positions of the arrays that the operator writes to.

    Raises
    ------
    TypeError
        An argument is no array.
    ValueError
        An array that is written to is read-only.
    UnsupportedError
        The ABI has no code for an element type.
    """

    def __init__(self, arrays: Sequence[Any], mutated: Sequence[int]) -> None:
        self._copies: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.columns: list[tuple[Any, ...]] = []
        written = frozenset(mutated)
        for position, array in enumerate(arrays):
            self.columns.append(self._lend(position, array, position in written))

    def take_back(self) -> None:
        """Copy what the operator wrote to copies back into the arrays themselves."""
        for given, copy in self._copies:
            np.copyto(given, copy)

    def _lend(self, position: int, array: Any, mutated: bool) -> tuple[Any, ...]:
        if isinstance(array, BaseSparseNDArray):
            parts = array.parts
            data, indices, pointers = parts.data, parts.indices, parts.indptr
        elif isinstance(array, np.ndarray):
            data, indices, pointers = array, None, None
        else:
            raise TypeError(
                f"input {position} is of type {type(array).__name__}, not an array; make one with "
                "passlib.nd.array"
            )
        what = type_of(array)

        def lend(
            part: np.ndarray[Any, Any] | None, dtype: np.dtype[Any]
        ) -> np.ndarray[Any, Any] | None:
            if part is None:
                return None
            if mutated and not part.flags.writeable:
                raise ValueError(f"the operator writes to its input {position}, which is read-only")
            used = np.asarray(part, dtype, order="C")
            if mutated and not np.shares_memory(used, part):
                self._copies.append((part, used))
            return used

        return (
            dtypes.code(what.dtype),
            STORAGE.index(what.stype),
            what.shape,
            lend(data, data.dtype.newbyteorder("=")),
            lend(indices, _INDEX),
            lend(pointers, _INDEX),
            mutated,
        )


def take_outputs(types: Sequence[ArrayType], results: Sequence[Any]) -> list[Any]:
    """Make arrays of the memory that an operator filled.

    Raises
    ------
    ValueError
        A sparse one is not sound.
    """
    arrays: list[Any] = []
    for position, (wanted, (stored, data, indices, pointers)) in enumerate(
        zip(types, results, strict=True)
    ):
        values = data.view(wanted.dtype).reshape(stored)
        if indices is None:
            arrays.append(values.view(NDArray))
            continue
        parts = Sparse(
            wanted.stype,
            wanted.shape,
            values,
            indices.view(_INDEX),
            None if pointers is None else pointers.view(_INDEX),
        )
        try:
            arrays.append(wrap(parts))
        except ValueError as error:
            raise ValueError(
                f"gave a {wanted.stype} array that is not sound as its output {position}: {error}"
            ) from None
    return arrays
