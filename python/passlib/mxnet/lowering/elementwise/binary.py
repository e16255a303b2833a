"""Elementwise functions of two arrays, of equal shapes or shapes that broadcast.

Results have the element type of the operands, even those of comparisons (1 and 0).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import (
    as_number,
    is_real,
    is_true,
    larger,
    number_of,
    smaller,
    through_real,
)
from passlib.mxnet.lowering.table import table


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


def _plain(onnx_operator: str, op: Operation, a: Value, b: Value) -> Value:
    return op.emit(onnx_operator, a, b)


def _modulo(op: Operation, a: Value, b: Value) -> Value:
    """Compute the remainder with the sign of the divisor; 0 where the divisor is 0."""
    zero = op.constant_like(0, b)
    by_zero = b.equals(zero)
    if not is_real(op.dtype_of(a)):
        return op.emit("Mod", a, op.where(by_zero, 1, b))
    sizes = op.emit("Abs", a), op.emit("Abs", b)
    rest = op.emit("Mod", *sizes, fmod=1)
    rest = op.where(((a < zero) ^ (b < zero)) & is_true(op, rest), sizes[1] - rest, rest)
    rest = op.where(b < zero, -rest, rest)
    return op.where(by_zero, zero, rest)


def _power(op: Operation, a: Value, b: Value) -> Value:
    return through_real(op, (a, b), lambda x, y: x**y)


def _hypotenuse(op: Operation, a: Value, b: Value) -> Value:
    """Compute sqrt(a^2 + b^2) without intermediate overflow; infinite if either side is."""

    def compute(x: Value, y: Value) -> Value:
        squares = x * x + y * y
        infinite = op.emit("IsInf", x) | op.emit("IsInf", y)
        return op.where(infinite, np.inf, op.emit("Sqrt", squares))

    return through_real(op, (a, b), compute, double=True)


def _comparison(onnx_operator: str, op: Operation, a: Value, b: Value) -> Value:
    return as_number(op, op.emit(onnx_operator, a, b), a)


def _not_equal(op: Operation, a: Value, b: Value) -> Value:
    return as_number(op, ~a.equals(b), a)


def _logical(onnx_operator: str, op: Operation, a: Value, b: Value) -> Value:
    return as_number(op, op.emit(onnx_operator, is_true(op, a), is_true(op, b)), a)


BINARY: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "add": partial(_plain, "Add"),
    "subtract": partial(_plain, "Sub"),
    "multiply": partial(_plain, "Mul"),
    "divide": partial(_plain, "Div"),
    "modulo": _modulo,
    "power": _power,
    "maximum": larger,
    "minimum": smaller,
    "hypotenuse": _hypotenuse,
    "equal": partial(_comparison, "Equal"),
    "not_equal": _not_equal,
    "greater": partial(_comparison, "Greater"),
    "greater_equal": partial(_comparison, "GreaterOrEqual"),
    "lesser": partial(_comparison, "Less"),
    "lesser_equal": partial(_comparison, "LessOrEqual"),
    "logical_and": partial(_logical, "And"),
    "logical_or": partial(_logical, "Or"),
    "logical_xor": partial(_logical, "Xor"),
}
"""Each function of two operands in ONNX; shared with scalar operands."""

_NAMES = {
    "plus": "add",
    "minus": "subtract",
    "mul": "multiply",
    "div": "divide",
    "mod": "modulo",
    "hypot": "hypotenuse",
}
_NAMES |= {name: name for name in BINARY if name not in _NAMES.values()}
"""MXNet's names without prefix, and their functions."""


def _of_two(function: str, op: Operation) -> Value:
    return BINARY[function](op, op.inputs[0], op.inputs[1])


_FURTHER = {
    "plus": "elemwise_add _add _grad_add broadcast_add",
    "minus": "elemwise_sub _sub broadcast_sub",
    "mul": "elemwise_mul",
    "div": "elemwise_div _scatter_elemwise_div",
}
for _name, _function in _NAMES.items():
    _spellings = (f"_{_name}", f"_{_name.title()}", f"broadcast_{_name}")
    table.register(*_spellings, *_FURTHER.get(_name, "").split())(partial(_of_two, _function))
    for _scalar in (f"_{_name}_scalar", f"_r{_name}_scalar"):
        _first = _scalar.startswith("_r")
        if not _first or _name in ("minus", "div", "mod", "power"):
            _names = (_scalar, _legacy_name(_scalar))
            table.register(*_names)(partial(_with_number, _function, _first))
for _name in ("plus", "minus"):
    table.register(f"_scatter_{_name}_scalar")(partial(_with_number, _NAMES[_name], False))


@table.register("add_n", "ElementWiseSum")
def add_n(op: Operation) -> Value:
    """Sum ``num_args`` arrays of one shape."""
    total = op.inputs[0]
    for term in op.inputs[1:]:
        total = total + term
    return total


@table.register("_contrib_allclose")
def allclose(op: Operation) -> Value:
    """Return uint8 1 of shape () if |a - b| <= atol + rtol |b| everywhere, else 0."""
    a, b = op.operands(2)
    if not is_real(op.dtype_of(a)):
        a, b = (op.cast(value, np.float64) for value in (a, b))
    rtol, atol = op.float("rtol", 1e-5), op.float("atol", 1e-8)
    near = op.emit("Abs", a - b) <= op.emit("Abs", b) * rtol + atol
    near = near | a.equals(b)
    if op.bool("equal_nan", True):
        near = near | op.emit("IsNaN", a) & op.emit("IsNaN", b)
    return op.emit("ReduceMin", op.cast(near, np.uint8), keepdims=0)
