"""Arithmetic that MXNet does in another element type than its inputs have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from passlib.lowering import Operation, Value

__all__ = ["as_number", "element_type", "is_real", "is_true", "number_of", "through_real"]


_ELEMENT_TYPES = (
    "bfloat16 bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)


def element_type(
    op: Operation, default: np.dtype | type[np.generic] | None = None, name: str = "dtype"
) -> np.dtype:
    """Read an element type from an attribute.

    Raises
    ------
    UnsupportedError
        It is no element type of MXNet, or none is given and there is no default.
    """
    text = op.attr(name)
    if text is not None and text not in (*_ELEMENT_TYPES.split(), "None"):
        op.unsupported("is no element type of MXNet", name)
    dtype = op.dtype(name, None if default is None else np.dtype(default))
    if dtype is None:
        op.unsupported("names no element type", name)
    return dtype


def is_real(dtype: np.dtype) -> bool:
    """Whether an element type is a floating point one, bfloat16 included."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_true(op: Operation, value: Value) -> Value:
    """Truth of each element as C sees it: everything but zero, NaN included."""
    if op.dtype_of(value) == np.bool_:
        return value
    return op.emit("Not", op.emit("Equal", value, op.constant_like(0, value)))


def number_of(op: Operation, name: str, default: float, dtype: np.dtype) -> Value:
    """Read a number from an attribute as a constant (), converted as C does.

    Fractions are cut off where the type holds whole numbers, and what is too large wraps.

    Raises
    ------
    UnsupportedError
        The number is infinite or NaN and the type holds whole numbers.
    """
    number = op.float(name, default)
    if is_real(dtype) or dtype == np.bool_:
        return op.constant(np.asarray(number).astype(dtype))
    if not math.isfinite(number):
        op.unsupported(f"has no counterpart in {dtype}", name)
    # By way of Python's int: NumPy does not say what becomes of -2.0 as uint8, C wraps it.
    return op.constant(np.asarray(int(number) & (2**64 - 1), np.uint64).astype(dtype))


def as_number(op: Operation, truth: Value, like: Value) -> Value:
    """Write truth as 1 and 0 in the element type of ``like``, as MXNet's comparisons do."""
    return op.cast(truth, op.dtype_of(like))


def through_real(
    op: Operation,
    inputs: Sequence[Value],
    compute: Callable[..., Value],
    *,
    double: bool = False,
) -> Value:
    """Compute with real numbers and return to the element type of the first input.

    Parameters
    ----------
    op : Operation
    inputs : sequence of Value
        All of one element type.
    compute : callable
        Given the inputs as real numbers, emits the result.
    double : bool
        Compute in float64 whatever the inputs are, where float32 would lose digits.

    Notes
    -----
    MXNet evaluates a function of whole numbers in float32 and cuts the fraction off.
    """
    dtype = op.dtype_of(inputs[0])
    whole = not is_real(dtype)
    working = np.dtype(np.float64) if double else np.dtype(np.float32) if whole else dtype
    result = compute(*(op.cast(value, working) for value in inputs))
    if whole:
        result = op.cast(result, np.float32)
    return op.cast(result, dtype)
