"""Elementwise functions of one array, of two, and of an array and a number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value


@table.register("copy", "block_grad", "identity")
def identity(op: Operation) -> Value:
    """Return the input."""
    return op.emit("Identity", op.inputs[0])


@table.register("elemwise_sum")
def elemwise_sum(op: Operation) -> Value:
    """Add all inputs, which have one shape."""
    total = op.inputs[0]
    for value in op.inputs[1:]:
        total = op.emit("Add", total, value)
    return total if len(op.inputs) > 1 else op.emit("Identity", total)


def _mod(op: Operation, a: Value, b: Value) -> Value:
    """Compute the remainder with the sign of the dividend, as in C."""
    return op.emit("Mod", a, b, fmod=1)


def _power(op: Operation, a: Value, b: Value) -> Value:
    return op.emit("Pow", a, b)


def _shift_left(op: Operation, a: Value, b: Value) -> Value:
    _require_whole(op, a)
    return op.emit("Mul", a, _power_of_two(op, a, b))


def _shift_right(op: Operation, a: Value, b: Value) -> Value:
    """Divide by a power of two, rounding toward negative infinity."""
    _require_whole(op, a)
    divisor = _power_of_two(op, a, b)
    return op.emit("Div", op.emit("Sub", a, op.emit("Mod", a, divisor)), divisor)


def _power_of_two(op: Operation, like: Value, exponent: Value) -> Value:
    if exponent.constant is not None:
        bits = 8 * op.dtype_of(like).itemsize
        if not np.all((exponent.constant >= 0) & (exponent.constant < bits)):
            op.unsupported(f"integers of {bits} bits can be shifted by 0 to {bits - 1}")
        return op.constant_like(2.0 ** np.asarray(exponent.constant, np.float64), like)
    two = op.constant(2.0, np.float64)
    return op.cast(op.emit("Pow", two, op.cast(exponent, np.float64)), op.dtype_of(like))


def _require_whole(op: Operation, value: Value) -> None:
    if op.dtype_of(value).kind not in "iu":
        op.unsupported("only integers can be shifted")


def _comparison(onnx_operator: str) -> Callable[[Operation, Value, Value], Value]:
    def compare(op: Operation, a: Value, b: Value) -> Value:
        return op.cast(op.emit(onnx_operator, a, b), op.dtype_of(a))

    return compare


def _unequal(op: Operation, a: Value, b: Value) -> Value:
    return op.cast(op.emit("Not", op.emit("Equal", a, b)), op.dtype_of(a))


def _plain(onnx_operator: str) -> Callable[[Operation, Value, Value], Value]:
    return lambda op, a, b: op.emit(onnx_operator, a, b)


_BINARY: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "elemwise_mod": _mod,
    "elemwise_pow": _power,
    "broadcast_mod": _mod,
    "broadcast_pow": _power,
    "broadcast_max": _plain("Max"),
    "broadcast_min": _plain("Min"),
    "broadcast_left_shift": _shift_left,
    "broadcast_right_shift": _shift_right,
    "broadcast_less": _comparison("Less"),
    "broadcast_less_equal": _comparison("LessOrEqual"),
    "__add_symbol__": _plain("Add"),
    "__sub_symbol__": _plain("Sub"),
    "__mul_symbol__": _plain("Mul"),
    "__div_symbol__": _plain("Div"),
    "__mod_symbol__": _mod,
    "__pow_symbol__": _power,
    "__max_symbol__": _plain("Max"),
    "__min_symbol__": _plain("Min"),
    "__left_shift_symbol__": _shift_left,
    "__right_shift_symbol__": _shift_right,
    "__equal_symbol__": _comparison("Equal"),
    "__not_equal_symbol__": _unequal,
    "__greater_symbol__": _comparison("Greater"),
    "__greater_equal_symbol__": _comparison("GreaterOrEqual"),
    "__less_symbol__": _comparison("Less"),
    "__less_equal_symbol__": _comparison("LessOrEqual"),
    "greater": _comparison("Greater"),
    "less": _comparison("Less"),
}

_SCALAR: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "__add_scalar__": _plain("Add"),
    "__sub_scalar__": _plain("Sub"),
    "__rsub_scalar__": lambda op, a, b: op.emit("Sub", b, a),
    "__mul_scalar__": _plain("Mul"),
    "__div_scalar__": _plain("Div"),
    "__rdiv_scalar__": lambda op, a, b: op.emit("Div", b, a),
    "__pow_scalar__": _power,
    "__rpow_scalar__": lambda op, a, b: op.emit("Pow", b, a),
    "__lshift_scalar__": _shift_left,
    "__rshift_scalar__": _shift_right,
}


def _logical(onnx_operator: str, op: Operation) -> Value:
    truths = [op.cast(value, np.bool_) for value in op.inputs]
    return op.cast(op.emit(onnx_operator, *truths), op.dtype_of(op.inputs[0]))


def _register() -> None:
    for name, binary in _BINARY.items():

        def of_two(op: Operation, compute: Callable[..., Value] = binary) -> Value:
            left, right = op.operands(2)
            return compute(op, left, right)

        table.register(name)(of_two)
    for name, with_number in _SCALAR.items():

        def of_number(op: Operation, compute: Callable[..., Value] = with_number) -> Value:
            # The number is rounded to single precision first, like the compiler's constants.
            data = op.inputs[0]
            return compute(op, data, op.constant_like(np.float32(op.float("scalar")), data))

        table.register(name)(of_number)
    for name, operator in (("logical_and", "And"), ("logical_or", "Or"), ("logical_not", "Not")):
        table.register(name)(lambda op, operator=operator: _logical(operator, op))


_register()
