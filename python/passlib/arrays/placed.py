"""Arrays on a device, dense or sparse."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

from passlib.arrays.context import Context

_A = TypeVar("_A")


class Placed(Generic[_A]):
    """The methods that concern an array's device."""

    _context: Context
    shape: Any

    @property
    def context(self) -> Context:
        """The device that the array is labelled with."""
        return self._context

    ctx = context

    def as_in_context(self, context: Context) -> _A:
        """Return the array on a device: itself if it is there already, else a copy.

        Parameters
        ----------
        context : Context

        Raises
        ------
        UnsupportedError
            The device is a GPU.
        """
        return cast("_A", self) if context == self._context else self._copy_to(context)

    as_in_ctx = as_in_context

    def copyto(self, other: Any) -> Any:
        """Copy into another array, dense or sparse, or into a new one on a device.

        Parameters
        ----------
        other : NDArray, BaseSparseNDArray or Context

        Returns
        -------
        array
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
        other.replace(self)
        return other

    def _copy_to(self, context: Context) -> _A:
        raise NotImplementedError

    def wait_to_read(self) -> None:
        """Do nothing: passlib computes synchronously."""
