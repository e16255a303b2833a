"""Python's operators on arrays as MXNet defines them: the element type of the array stays.

A number is converted to the element type of the array first, comparisons give 0 and 1 in that
type, integers are divided without a fraction, and a remainder by 0 is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, Final

import numpy as np

from passlib.errors import UnsupportedError

_Kernel = Callable[[Any, Any], Any]

_INT64: Final = np.dtype(np.int64)
_COMPARISONS: Final = frozenset(
    (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
)


def _divide(left: Any, right: Any) -> Any:
    if left.dtype.kind not in "iu" or right.dtype.kind not in "iu":
        return np.divide(left, right)
    if not np.all(right):
        raise UnsupportedError(
            "integers are divided by 0, which terminates the process in MXNet; divide "
            "array.astype('float32') for infinities"
        )
    quotient = np.floor_divide(left, right)
    # C rounds towards zero.
    inexact = (quotient < 0) & (quotient * right != left)
    return quotient + inexact.astype(quotient.dtype)


def _remainder(left: Any, right: Any) -> Any:
    zero = right == 0
    return np.where(zero, left.dtype.type(0), np.mod(left, np.where(zero, 1, right)))


def _power(left: Any, right: Any) -> Any:
    if left.dtype.kind not in "iu" or right.dtype.kind not in "iu":
        return np.power(left, right)
    # Through real numbers, as in MXNet: what is out of range becomes the smallest number of the
    # processor's conversion, of which small types keep the lowest bits.
    exact = np.power(left.astype(np.float64), right)
    limit = 2.0 ** (63 if left.dtype.itemsize == 8 else 31)
    return np.where(np.abs(exact) < limit, exact, -limit).astype(np.int64).astype(left.dtype)


def _truths(kernel: _Kernel, logical: _Kernel) -> _Kernel:
    """Combine bits of integers, and the truth of real numbers, so that comparisons combine."""

    def combined(left: Any, right: Any) -> Any:
        if left.dtype.kind in "iub" and right.dtype.kind in "iub":
            return kernel(left, right)
        return logical(left, right).astype(left.dtype)

    return combined


KERNELS: Final[dict[str, _Kernel]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": _divide,
    "mod": _remainder,
    "pow": _power,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": _truths(np.bitwise_and, np.logical_and),
    "or": _truths(np.bitwise_or, np.logical_or),
    "xor": _truths(np.bitwise_xor, np.logical_xor),
}
"""What each operator computes, by the name that Python gives its method."""

_REFLECTED: Final = ("add", "sub", "mul", "truediv", "mod", "pow", "and", "or", "xor")
_IN_PLACE: Final = ("add", "sub", "mul", "truediv", "mod")


def combine(kernel: _Kernel, left: Any, right: Any) -> Any:
    """Combine two operands element by element, at least one of them an array.

    Parameters
    ----------
    kernel : callable
        Computes the result from two arrays.
    left, right : numpy.ndarray or number
        Arrays of different element types are combined in NumPy's common type.

    Returns
    -------
    numpy.ndarray
        In the element type of the arrays; int64 for an array of bool and a number.
    """
    if not isinstance(left, np.ndarray):
        right = _number_side(right)
        left = _as_element(left, right.dtype)
    elif not isinstance(right, np.ndarray):
        left = _number_side(left)
        right = _as_element(right, left.dtype)
    elif left.dtype != right.dtype:
        common = np.result_type(left.dtype, right.dtype)
        left, right = left.astype(common), right.astype(common)
    with np.errstate(all="ignore"):
        result = kernel(left, right)
    return result.astype(left.dtype) if kernel in _COMPARISONS else result


def _number_side(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(_INT64) if array.dtype == np.bool_ else array


def _as_element(number: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert a number as C does: without its fraction, integers wrap."""
    return _truncated(np.asarray(number), dtype)


def _truncated(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind not in "iu":
        return np.asarray(values).astype(dtype)
    with np.errstate(invalid="ignore"):
        whole = values if values.dtype.kind in "iu" else np.trunc(values).astype(np.int64)
    return whole.astype(dtype)


class Arithmetic:
    """Python's operators; the other operand is an array, a number, or what makes an array."""

    def __neg__(self: Any) -> Any:
        return self.as_numpys(combine(np.multiply, np.asarray(self), -1))

    def __abs__(self: Any) -> Any:
        return self.as_numpys(np.abs(np.asarray(self)))

    def __ipow__(self: Any, other: Any) -> Any:
        return self**other  # as in MXNet, a new array

    def as_numpys(self: Any, result: np.ndarray[Any, Any]) -> Any:
        """Return a plain result as an array on the device of this one."""
        raise NotImplementedError


def _operand(other: Any) -> Any:
    """Return the other operand as a plain array or a number; None if it is neither."""
    if isinstance(other, np.ndarray):
        return np.asarray(other)
    if isinstance(other, (Number, np.generic)):
        return other
    if isinstance(other, (list, tuple)):
        return np.asarray(other)
    return None


def _forward(kernel: _Kernel) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        return self.as_numpys(combine(kernel, np.asarray(self), operand))

    return method


def _backward(kernel: _Kernel) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        return self.as_numpys(combine(kernel, operand, np.asarray(self)))

    return method


def _in_place(kernel: _Kernel) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        np.copyto(np.asarray(self), combine(kernel, np.asarray(self), operand), casting="unsafe")
        return self

    return method


for _name, _kernel in KERNELS.items():
    setattr(Arithmetic, f"__{_name}__", _forward(_kernel))
for _name in _REFLECTED:
    setattr(Arithmetic, f"__r{_name}__", _backward(KERNELS[_name]))
for _name in _IN_PLACE:
    setattr(Arithmetic, f"__i{_name}__", _in_place(KERNELS[_name]))
