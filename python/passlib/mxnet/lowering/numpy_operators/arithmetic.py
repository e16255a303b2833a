"""Functions of two arrays that broadcast, or of an array and a number.

Arrays of different element types are promoted; comparisons return truth values. With a number
the array's type counts, but integers become float64 if ``is_int`` is false and truth values
become int64; division computes integers in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.elementwise.binary import BINARY
from passlib.mxnet.lowering.elementwise.scalar import array_and_number
from passlib.mxnet.lowering.numpy_operators.functions import FUNCTIONS
from passlib.mxnet.lowering.numpy_operators.promotion import (
    equal_types,
    in_bytes,
    promoted,
)
from passlib.mxnet.lowering.real_arithmetic import is_real, number_of
from passlib.mxnet.lowering.table import table

__all__: list[str] = []

_ARITHMETIC = {
    "add": ("add", True),
    "subtract": ("subtract", False),
    "multiply": ("multiply", True),
    "mod": ("modulo", False),
    "power": ("power", True),
}
"""The function of two arrays, and whether it takes integers of two types in one shape."""

_COMPARISONS = {
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "less": "lesser",
    "less_equal": "lesser_equal",
}

_REVERSED = ("subtract", "mod", "power", "arctan2", "copysign", "ldexp")
"""Functions that also take the number as the first operand, under a name with ``r``."""


def _compute(function: str, op: Operation, a: Value, b: Value) -> Value:
    """Apply a function to operands of one type; truth values are computed as bytes."""
    dtype = op.dtype_of(a)
    compute = FUNCTIONS.get(function) or BINARY[function]
    return op.cast(compute(op, in_bytes(op, a), in_bytes(op, b)), dtype)


def _promoting(function: str, mixes_integers: bool, op: Operation) -> Value:
    a, b = op.operands(2)
    # Where one of two shapes is stretched, MXNet mixes integers in all of these functions.
    one_shape = a.known and a.shape == b.shape
    dtype = promoted(op, a, b, mixes_integers=mixes_integers or not one_shape)
    return _compute(function, op, op.cast(a, dtype), op.cast(b, dtype))


def _of_one_type(function: str, op: Operation) -> Value:
    a, b = op.operands(2)
    equal_types(op, a, b)
    return _compute(function, op, a, b)


def _compared(function: str, op: Operation, a: Value, b: Value) -> Value:
    return op.cast(BINARY[function](op, in_bytes(op, a), in_bytes(op, b)), np.bool_)


def _comparing(function: str, op: Operation) -> Value:
    a, b = op.operands(2)
    equal_types(op, a, b)
    return _compared(function, op, a, b)


def _ordered(pair: tuple[Value, Value], *, number_first: bool) -> tuple[Value, Value]:
    return pair[::-1] if number_first else pair


def _with_number(function: str, number_first: bool, op: Operation) -> Value:
    if function.startswith("bitwise"):
        data = op.inputs[0]
        return _compute(function, op, data, number_of(op, "scalar", 1.0, op.dtype_of(data)))
    return _compute(function, op, *_ordered(array_and_number(op), number_first=number_first))


def _compared_with_number(function: str, op: Operation) -> Value:
    data = op.inputs[0]
    whole = not is_real(op.dtype_of(data)) and op.dtype_of(data) != np.bool_
    if whole and not op.bool("is_int", True):
        data = op.cast(data, np.float64)
    return _compared(function, op, data, number_of(op, "scalar", 1.0, op.dtype_of(data)))


def _as_divided(op: Operation, dtype: np.dtype) -> np.dtype:
    return dtype if is_real(dtype) else np.dtype(np.float32)


@table.register("_npi_true_divide")
def true_divide(op: Operation) -> Value:
    """Divide; two integers in float32."""
    a, b = op.operands(2)
    dtype = _as_divided(op, promoted(op, a, b, mixes_integers=False))
    return op.emit("Div", op.cast(a, dtype), op.cast(b, dtype))


def _divided_by_number(number_first: bool, op: Operation) -> Value:
    data = op.inputs[0]
    dtype = _as_divided(op, op.dtype_of(data))
    pair = op.cast(data, dtype), number_of(op, "scalar", 1.0, dtype)
    return op.emit("Div", *_ordered(pair, number_first=number_first))


def _register(name: str, function: str, two: Callable[[Operation], Value]) -> None:
    table.register(f"_npi_{name}")(two)
    table.register(f"_npi_{name}_scalar")(partial(_with_number, function, False))
    if name in _REVERSED:
        table.register(f"_npi_r{name}_scalar")(partial(_with_number, function, True))


for _name, (_function, _mixes) in _ARITHMETIC.items():
    _register(_name, _function, partial(_promoting, _function, _mixes))
for _name in FUNCTIONS:
    _register(_name, _name, partial(_of_one_type, _name))
for _name, _function in _COMPARISONS.items():
    table.register(f"_npi_{_name}")(partial(_comparing, _function))
    table.register(f"_npi_{_name}_scalar")(partial(_compared_with_number, _function))
table.register("_npi_hypot")(partial(_of_one_type, "hypotenuse"))
table.register("_npi_true_divide_scalar")(partial(_divided_by_number, False))
table.register("_npi_rtrue_divide_scalar")(partial(_divided_by_number, True))
