"""Functions of an array and a number: ``_plus_scalar`` and the like.

MXNet first converts the number to the element type of the array (2.5 becomes 2 for int32). If
the attribute ``is_int`` is false and the array holds integers, both become float64; truth values
become int64.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.elementwise.binary import BINARY
from passlib.mxnet.lowering.real_arithmetic import is_real, number_of
from passlib.mxnet.lowering.table import table

_OPERATORS = {
    "_plus_scalar": ("add", False),
    "_minus_scalar": ("subtract", False),
    "_rminus_scalar": ("subtract", True),
    "_mul_scalar": ("multiply", False),
    "_div_scalar": ("divide", False),
    "_rdiv_scalar": ("divide", True),
    "_mod_scalar": ("modulo", False),
    "_rmod_scalar": ("modulo", True),
    "_power_scalar": ("power", False),
    "_rpower_scalar": ("power", True),
    "_maximum_scalar": ("maximum", False),
    "_minimum_scalar": ("minimum", False),
    "_hypot_scalar": ("hypotenuse", False),
    "_equal_scalar": ("equal", False),
    "_not_equal_scalar": ("not_equal", False),
    "_greater_scalar": ("greater", False),
    "_greater_equal_scalar": ("greater_equal", False),
    "_lesser_scalar": ("lesser", False),
    "_lesser_equal_scalar": ("lesser_equal", False),
    "_logical_and_scalar": ("logical_and", False),
    "_logical_or_scalar": ("logical_or", False),
    "_logical_xor_scalar": ("logical_xor", False),
    "_scatter_plus_scalar": ("add", False),
    "_scatter_minus_scalar": ("subtract", False),
}
"""The function of two arrays by MXNet's name, and whether the number is the first operand."""


def array_and_number(op: Operation) -> tuple[Value, Value]:
    """Return the input and the attribute ``scalar``, both of the type in which to compute."""
    data = op.inputs[0]
    if not is_real(op.dtype_of(data)):
        if not op.bool("is_int", True):
            data = op.cast(data, np.float64)
        elif op.dtype_of(data) == np.bool_:
            data = op.cast(data, np.int64)
    return data, number_of(op, "scalar", 1.0, op.dtype_of(data))


def _with_number(function: str, number_first: bool, op: Operation) -> Value:
    data, number = array_and_number(op)
    divisor_is_zero = function == "divide" and not number_first and not np.any(number.constant)
    if divisor_is_zero and not is_real(op.dtype_of(data)):
        op.unsupported("division of integers by zero", "scalar")
    operands = (number, data) if number_first else (data, number)
    return BINARY[function](op, *operands)


def _legacy_name(name: str) -> str:
    """Return the name before NNVM: ``_PlusScalar``, ``_RMinusScalar``, ``_GreaterEqualScalar``."""
    words = name.strip("_").split("_")
    reverse = words[0][1:] in ("minus", "div", "mod", "power") and words[0][0] == "r"
    first = "R" + words[0][1:].capitalize() if reverse else words[0].capitalize()
    return "_" + first + "".join(word.capitalize() for word in words[1:])


for _name, (_function, _number_first) in _OPERATORS.items():
    _names = (_name,) if _name.startswith("_scatter") else (_name, _legacy_name(_name))
    table.register(*_names)(partial(_with_number, _function, _number_first))
