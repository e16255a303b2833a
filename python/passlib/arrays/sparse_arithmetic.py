"""Python's operators and indexing of sparse arrays, with MXNet's rules for the results' storage.

A result is sparse where every element that no operand stores is 0: of two arrays of one kind after
``+ - *``, of a sparse array times a dense one, and of a number where the function of 0 and that
number is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, Final

import numpy as np

from passlib.arrays.arithmetic import KERNELS, combine
from passlib.arrays.ndarray import NDArray

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
