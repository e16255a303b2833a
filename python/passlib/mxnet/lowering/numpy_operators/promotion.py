"""Element types of results of arrays of different element types, as MXNet promotes them."""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.real_arithmetic import is_real


def promoted(op: Operation, a: Value, b: Value, *, mixes_integers: bool) -> np.dtype:
    """Return the element type in which MXNet computes with two arrays.

    A floating-point type wins over integers whatever its width, the wider one wins among types
    of one kind, truth values lose.

    Raises
    ------
    Misfit
        MXNet computes nothing from the two: uint8 and int8, or two integer types without
        ``mixes_integers``.
    """
    first, second = op.dtype_of(a), op.dtype_of(b)
    if first == second:
        return first
    reals = [dtype for dtype in (first, second) if is_real(dtype)]
    if len(reals) == 1:
        return reals[0]
    wider = max(first, second, key=lambda dtype: (dtype != np.bool_, dtype.itemsize))
    same_width = first.itemsize == second.itemsize and np.bool_ not in (first, second)
    if same_width or not (reals or mixes_integers):
        raise Misfit(f"MXNet does not combine {first} and {second}")
    return wider


def equal_types(op: Operation, a: Value, b: Value) -> None:
    """Check that two arrays have one element type.

    Raises
    ------
    Misfit
        They have two.
    """
    first, second = op.dtype_of(a), op.dtype_of(b)
    if first != second:
        raise Misfit(f"MXNet does not combine {first} and {second} here")


def in_bytes(op: Operation, value: Value) -> Value:
    """Return truth values as uint8, in which ONNX computes; anything else as it is."""
    return op.cast(value, np.uint8) if op.dtype_of(value) == np.bool_ else value
