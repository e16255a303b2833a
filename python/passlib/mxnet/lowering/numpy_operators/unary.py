"""Functions of a single array that only NumPy mode has, or that return truth values there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import is_real, is_true
from passlib.mxnet.lowering.table import table


def _is_finite(op: Operation, x: Value) -> Value:
    return op.emit("Not", op.emit("Or", op.emit("IsNaN", x), op.emit("IsInf", x)))


_PREDICATES: dict[str, tuple[bool, Callable[[Operation, Value], Value]]] = {
    "isfinite": (True, _is_finite),
    "isinf": (False, lambda op, x: op.emit("IsInf", x)),
    "isnan": (False, lambda op, x: op.emit("IsNaN", x)),
    "isneginf": (False, lambda op, x: op.emit("IsInf", x, detect_positive=0)),
    "isposinf": (False, lambda op, x: op.emit("IsInf", x, detect_negative=0)),
}
"""By name: the answer for every integer, and that for floating-point numbers."""


def _predicate(name: str, op: Operation) -> Value:
    x = op.inputs[0]
    of_integers, compute = _PREDICATES[name]
    if is_real(op.dtype_of(x)):
        return compute(op, x)
    return op.emit("Expand", op.constant(of_integers), op.emit("Shape", x))


for _name in _PREDICATES:
    table.register(f"_npi_{_name}")(partial(_predicate, _name))


@table.register("_npi_logical_not")
def logical_not(op: Operation) -> Value:
    """Whether each element is 0."""
    return op.emit("Not", is_true(op, op.inputs[0]))


@table.register("_npi_bitwise_not")
def bitwise_not(op: Operation) -> Value:
    """Invert all bits of integers, or truth values."""
    x = op.inputs[0]
    if is_real(op.dtype_of(x)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(x)}")
    return op.emit("Not" if op.dtype_of(x) == np.bool_ else "BitwiseNot", x)


@table.register("_npi_around")
def around(op: Operation) -> Value:
    """Round to ``decimals``, halves to even; integers are truncated to tens, hundreds, ..."""
    x, decimals = op.inputs[0], op.int("decimals", 0)
    if abs(decimals) > 300:
        op.unsupported("must be between -300 and 300", "decimals")
    if not is_real(op.dtype_of(x)):
        if decimals >= 0:
            return x
        unit = 10**-decimals
        if unit > np.iinfo(op.dtype_of(x)).max:
            return op.emit("Mul", x, op.constant_like(0, x))
        ten = op.constant_like(unit, x)
        return op.emit("Mul", op.emit("Div", x, ten), ten)
    if decimals == 0:
        return op.emit("Round", x)
    scale = op.constant_like(10.0 ** abs(decimals), x)
    before, after = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return op.emit(after, op.emit("Round", op.emit(before, x, scale)), scale)


@table.register("_npi_nan_to_num")
def nan_to_num(op: Operation) -> Value:
    """Replace NaN by ``nan``, infinities by ``posinf`` and ``neginf`` or the largest numbers."""
    x = op.inputs[0]
    dtype = op.dtype_of(x)
    if not is_real(dtype):
        return x
    limit = 3.38953139e38 if dtype.name == "bfloat16" else float(np.finfo(dtype).max)
    upper, lower = op.optional_float("posinf"), op.optional_float("neginf")
    replacements = (
        (op.emit("IsNaN", x), op.float("nan", 0.0)),
        (op.emit("IsInf", x, detect_negative=0), limit if upper is None else upper),
        (op.emit("IsInf", x, detect_positive=0), -limit if lower is None else lower),
    )
    for found, number in replacements:
        x = op.emit("Where", found, op.constant_like(number, x), x)
    return x
