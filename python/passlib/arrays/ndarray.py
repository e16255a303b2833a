"""Dense arrays: NumPy arrays with the methods that MXNet scripts call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import Context, cpu, require_host
from passlib.arrays.placed import Placed

__all__ = ["NDArray", "register_compression"]

_HOST: Final = cpu()

_compress: list[Callable[[np.ndarray[Any, Any], str], Any]] = []


def register_compression(function: Callable[[np.ndarray[Any, Any], str], Any]) -> None:
    """Set the function that `NDArray.tostype` calls to make sparse arrays.

    Their module imports this one.
    """
    _compress[:] = [function]


class NDArray(Placed["NDArray"], np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array that also has MXNet's methods.

    Slicing, arithmetic and everything else follow NumPy: comparisons return bool, indexing with
    integers only returns 0 dimensions. Unlike in NumPy, such results and those of ``sum`` and
    similar functions are arrays, so that ``x[0].asscalar()`` works as in MXNet; the result of
    integer indexing still shares memory.

    Notes
    -----
    Made by the functions of `passlib.nd`, or from any array by ``array.view(NDArray)``.
    """

    # Higher than ndarray's, so that np.concatenate and similar functions return this class.
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
        """Return the only element.

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
        """Return this array in another storage type.

        Parameters
        ----------
        stype : {"default", "row_sparse", "csr"}

        Returns
        -------
        NDArray, RowSparseNDArray or CSRNDArray

        Raises
        ------
        ValueError
            The storage type is unknown, or does not support this shape.
        """
        if stype == "default":
            return self
        return _compress[0](self, stype)

    def wait_to_write(self) -> None:
        """Do nothing: passlib computes synchronously."""
