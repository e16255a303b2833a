"""Functions of MXNet's ``nd`` that combine arrays and numbers: ``nd.add(2, x)``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from passlib.arrays.ndarray import NDArray, combine


def _truth(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def kernel(left: Any, right: Any) -> Any:
        return function(left, right).astype(left.dtype)

    return kernel


def _python(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the function of a Python operator, which the class of the arrays defines."""

    def combined(lhs: Any, rhs: Any) -> Any:
        return function(lhs, rhs)

    return _described(combined, name)


def _numpy(
    name: str, kernel: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """Return a function for which Python has no operator."""

    def combined(lhs: Any, rhs: Any) -> Any:
        arrays = [value for value in (lhs, rhs) if isinstance(value, np.ndarray)]
        if not arrays:
            return plain(lhs, rhs)
        left, right = (np.asarray(v) if isinstance(v, np.ndarray) else v for v in (lhs, rhs))
        result = combine(kernel, left, right)
        first = arrays[0]
        return first.as_numpys(result) if isinstance(first, NDArray) else result.view(NDArray)

    return _described(combined, name)


def _described(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Compute {name} of two arrays, or of an array and a number, element by element.\n\n"
        "Shapes are broadcast. The result has the element type of the array; of two numbers it is "
        "a number."
    )
    return function


_OF_PYTHON: Final = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "modulo": operator.mod,
    "power": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "lesser": operator.lt,
    "lesser_equal": operator.le,
}

_OF_NUMPY: Final[dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]]] = {
    "maximum": (np.maximum, max),
    "minimum": (np.minimum, min),
    "logical_and": (_truth(np.logical_and), lambda a, b: int(bool(a) and bool(b))),
    "logical_or": (_truth(np.logical_or), lambda a, b: int(bool(a) or bool(b))),
    "logical_xor": (_truth(np.logical_xor), lambda a, b: int(bool(a) != bool(b))),
}

FUNCTIONS: Final = {
    **{name: _python(name, function) for name, function in _OF_PYTHON.items()},
    **{name: _numpy(name, *functions) for name, functions in _OF_NUMPY.items()},
}


def _tested(data: Any, test: Callable[[Any], Any]) -> NDArray:
    plain = np.asarray(data)
    result = test(plain).astype(plain.dtype)
    return data.as_numpys(result) if isinstance(data, NDArray) else result.view(NDArray)


def isfinite(data: Any) -> NDArray:
    """Return 1 for each element that is finite, else 0, in the element type of the array."""
    return _tested(data, np.isfinite)


def isinf(data: Any) -> NDArray:
    """Return 1 for each element that is infinite, else 0, in the element type of the array."""
    return _tested(data, np.isinf)


def isnan(data: Any) -> NDArray:
    """Return 1 for each element that is NaN, else 0, in the element type of the array."""
    return _tested(data, np.isnan)
