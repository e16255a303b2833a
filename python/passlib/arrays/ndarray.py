"""Dense arrays: NumPy's, with the methods that MXNet scripts call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import Context, cpu, require_host

__all__ = ["NDArray", "register_compression"]

_HOST: Final = cpu()

_compress: list[Callable[[np.ndarray[Any, Any], str], Any]] = []


def register_compression(function: Callable[[np.ndarray[Any, Any], str], Any]) -> None:
    """Set the function by which `NDArray.tostype` makes sparse arrays, whose module is above."""
    _compress[:] = [function]


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array that also knows MXNet's methods.

    Slicing, arithmetic and all else follow NumPy: comparisons give bool, indexing with
    integers only gives 0 dimensions. Unlike in NumPy such results, and those of ``sum`` and
    the like, stay arrays, so that ``x[0].asscalar()`` works as in MXNet; an index of integers
    still shares memory.

    Notes
    -----
    Made by the functions of `passlib.nd`, or from any array by ``array.view(NDArray)``.
    """

    # Above ndarray's, so that np.concatenate and the like give this class.
    __array_priority__ = 1.0

    _context: Context

    def __array_finalize__(self, source: Any) -> None:
        self._context = getattr(source, "_context", _HOST)

    def __array_wrap__(  # type: ignore[override]
        self,
        array: np.ndarray[Any, Any],
        context: Any = None,
        return_scalar: bool = False,
    ) -> NDArray:
        wrapped = array.view(NDArray)
        wrapped._context = self._context
        return wrapped

    def __getitem__(self, key: Any) -> Any:
        result = super().__getitem__(key)
        if isinstance(result, np.ndarray):
            return result
        return super().__getitem__((*key, ...) if isinstance(key, tuple) else (key, ...))

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, arguments, state = cast("tuple[Any, ...]", super().__reduce__())
        return rebuild, arguments, (state, self._context)

    def __setstate__(self, state: Any) -> None:
        own, self._context = state
        super().__setstate__(own)

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"\n{np.asarray(self)}\n<{type(self).__name__} {shape} @{self._context}>"

    __str__ = __repr__

    @property
    def context(self) -> Context:
        """The device this array is said to be on."""
        return self._context

    ctx = context

    @property
    def stype(self) -> str:
        """MXNet's storage type."""
        return "default"

    def asnumpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Copy into a plain NumPy array.

        Returns
        -------
        numpy.ndarray
        """
        return np.array(self, subok=False)

    def asscalar(self) -> Any:
        """Give the only element.

        Returns
        -------
        NumPy scalar

        Raises
        ------
        ValueError
            There is not exactly one element.
        """
        if self.size != 1:
            raise ValueError(f"an array of shape {self.shape} is not a scalar")
        return np.asarray(self).reshape(-1)[0]

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> NDArray:
        """Do what `numpy.ndarray.astype` does, ``"bfloat16"`` included.

        Parameters
        ----------
        dtype : dtype-like
        *args, **kwargs
            As in NumPy.

        Returns
        -------
        NDArray
        """
        return cast("NDArray", super().astype(dtypes.as_dtype(dtype), *args, **kwargs))

    def as_in_context(self, context: Context) -> NDArray:
        """Give this array on a device: itself where it is there already, else a copy.

        Parameters
        ----------
        context : Context

        Returns
        -------
        NDArray

        Raises
        ------
        UnsupportedError
            The device is a GPU.
        """
        return self if context == self._context else self._copy_to(context)

    as_in_ctx = as_in_context

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array, or into a new one on a device.

        Parameters
        ----------
        other : NDArray or Context

        Returns
        -------
        NDArray
            ``other``, or the new array.

        Raises
        ------
        ValueError
            The shapes differ.
        UnsupportedError
            The device is a GPU.
        """
        if isinstance(other, Context):
            return self._copy_to(other)
        if other.shape != self.shape:
            raise ValueError(f"an array of shape {self.shape} does not fit into {other.shape}")
        np.copyto(other, self, casting="unsafe")
        return other

    def _copy_to(self, context: Context) -> NDArray:
        target = require_host(context, "an array")
        result: NDArray = self.copy()
        result._context = target
        return result

    def tostype(self, stype: str) -> Any:
        """Give this array in another storage type.

        Parameters
        ----------
        stype : {"default", "row_sparse", "csr"}

        Returns
        -------
        NDArray, RowSparseNDArray or CSRNDArray

        Raises
        ------
        ValueError
            No such storage type, or this shape cannot be stored so.
        """
        if stype == "default":
            return self
        return _compress[0](self, stype)

    def wait_to_read(self) -> None:
        """Do nothing: passlib computes at once."""

    def wait_to_write(self) -> None:
        """Do nothing: passlib computes at once."""
