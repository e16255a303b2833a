"""Arithmetic in another element type than that of the inputs, as MXNet does it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from passlib.lowering import Operation, Value

_ELEMENT_TYPES = (
    "bfloat16 bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)


def element_type(
    op: Operation, default: np.dtype | type[np.generic] | None = None, name: str = "dtype"
) -> np.dtype:
    """Read an element type from an attribute.

    Raises `UnsupportedError` if it is not an element type of MXNet, or the attribute is absent
    without a default.
    """
    text = op.attr(name)
    if text is not None and text not in (*_ELEMENT_TYPES.split(), "None"):
        op.unsupported("is not an element type of MXNet", name)
    dtype = op.dtype(name, None if default is None else np.dtype(default))
    if dtype is None:
        op.unsupported("specifies no element type", name)
    return dtype


def is_real(dtype: np.dtype) -> bool:
    """Whether an element type is a floating-point type, bfloat16 included."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


NARROW: Final = ("bfloat16", "float16", "float32")
"""The element types that automatic mixed precision converts."""


def multicast(
    types: Sequence[np.dtype | None], *, narrow: bool = False
) -> Sequence[np.dtype | None]:
    """Return the element types of the outputs of ``amp_multicast``, None where it is unknown.

    Inputs of the types `NARROW` get one type: float32 if there is any, else the type of the first
    input, whatever that is. If ``narrow``, it is float16 if there is any, else nothing changes.
    """
    preferred = np.dtype(np.float16 if narrow else np.float32)
    if preferred not in types and narrow:
        return types
    target = preferred if preferred in types else types[0]
    return [dtype if dtype is None or dtype.name not in NARROW else target for dtype in types]


def is_true(op: Operation, value: Value) -> Value:
    """Convert to truth values as C does: everything but zero is true, NaN included."""
    if op.dtype_of(value) == np.bool_:
        return value
    return ~value.equals(0)


def number_of(op: Operation, name: str, default: float, dtype: np.dtype) -> Value:
    """Read a number from an attribute as a constant of shape (), converted as C does.

    For an integer type the fraction is truncated, and a number out of range wraps. Raises
    `UnsupportedError` if the number is infinite or NaN and the type is an integer type.
    """
    number = op.float(name, default)
    if is_real(dtype) or dtype == np.bool_:
        return op.constant(np.asarray(number).astype(dtype))
    if not math.isfinite(number):
        op.unsupported(f"has no counterpart in {dtype}", name)
    # By way of Python's int: NumPy leaves -2.0 as uint8 undefined, C wraps it.
    return op.constant(np.asarray(int(number) & (2**64 - 1), np.uint64).astype(dtype))


def as_number(op: Operation, truth: Value, like: Value) -> Value:
    """Convert truth values to 1 and 0 in the element type of ``like``, as comparisons do."""
    return op.cast(truth, op.dtype_of(like))


def larger(op: Operation, a: Value, b: Value) -> Value:
    """Return the larger of two values."""
    return _extreme(op, "Max", "Greater", a, b)


def smaller(op: Operation, a: Value, b: Value) -> Value:
    """Return the smaller of two values."""
    return _extreme(op, "Min", "Less", a, b)


def _extreme(op: Operation, onnx_operator: str, comparison: str, a: Value, b: Value) -> Value:
    # Before version 1.32, ONNX Runtime takes numbers beyond 32 bits for others in Max, Min and
    # Clip of int64.
    if op.dtype_of(a) == np.int64:
        return op.where(op.emit(comparison, a, b), a, b)
    return op.emit(onnx_operator, a, b)


def through_real(
    op: Operation,
    inputs: Sequence[Value],
    compute: Callable[..., Value],
    *,
    double: bool = False,
    exact: bool = False,
) -> Value:
    """Compute in floating point and convert to the element type of the first input.

    Parameters
    ----------
    inputs : sequence of Value
        All of one element type.
    compute : callable
        Emits the result, given the inputs in floating point.
    double : bool
        Compute in float64 whatever the inputs are, because float32 would lose digits.
    exact : bool
        Compute functions of integers in float64, as MXNet does those of one argument that C's
        library has; all others it computes in float32. The result is truncated.
    """
    dtype = op.dtype_of(inputs[0])
    whole = not is_real(dtype)
    working = dtype
    if whole or double:
        working = np.dtype(np.float64 if double or exact else np.float32)
    result = compute(*(op.cast(value, working) for value in inputs))
    if whole and not exact:
        result = op.cast(result, np.float32)
    return op.cast(result, dtype)
