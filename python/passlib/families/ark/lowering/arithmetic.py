"""Unary and binary elementwise operators."""

from __future__ import annotations

import math

import numpy as np

from passlib.families.ark.lowering.table import TABLE, box_of, fit, type_of
from passlib.lowering import Operation, Value

__all__: list[str] = []


@TABLE.register("Add", "Sub", "Mul", "Div")
def binary(operation: Operation) -> Value:
    """Compute elementwise; operands broadcast as in NumPy, integers divide as in C."""
    return fit(operation, operation.emit(operation.node.op, *operation.inputs))


@TABLE.register("ScalarAdd", "ScalarMul")
def scalar(operation: Operation) -> Value:
    """Add ``Factor`` to every element, or multiply by it.

    The factor is rounded to a 32-bit float and converted to the element type, as in C.
    """
    value = operation.inputs[0]
    factor = operation.constant_like(np.float32(operation.float("Factor")), value)
    onnx = "Add" if operation.node.op == "ScalarAdd" else "Mul"
    return fit(operation, operation.emit(onnx, value, factor))


@TABLE.register("ScalarAssign")
def assign(operation: Operation) -> Value:
    """Fill with ``Value``."""
    filling = np.float32(operation.float("Value"))
    value = operation.constant(filling.astype(type_of(operation)))
    shape = operation.constant(box_of(operation).shape, np.int64)
    return operation.emit("Expand", value, shape)


@TABLE.register("Relu")
def relu(operation: Operation) -> Value:
    """Compute max(x, 0)."""
    value = operation.inputs[0]
    unsigned = operation.dtype_of(value).kind == "u"
    return fit(operation, operation.emit("Identity" if unsigned else "Relu", value))


@TABLE.register("Exp", "Sqrt", "Sigmoid")
def unary(operation: Operation) -> Value:
    """Compute elementwise; Sigmoid is 1 / (1 + exp(-x))."""
    return _like_operand(operation, operation.emit(operation.node.op, _real(operation)))


@TABLE.register("Rsqrt")
def reciprocal_root(operation: Operation) -> Value:
    """Compute 1 / sqrt(x), without an epsilon."""
    root = operation.emit("Sqrt", _real(operation))
    return _like_operand(operation, operation.emit("Reciprocal", root))


@TABLE.register("Gelu")
def gelu(operation: Operation) -> Value:
    """Compute 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the tanh form of GELU."""
    x = _real(operation)
    if operation.dtype_of(x).itemsize == 2:
        x = operation.cast(x, np.float32)  # the cube of a half overflows beyond 40
    cube = operation.emit("Mul", operation.emit("Mul", x, x), x)
    scaled = operation.emit("Mul", cube, operation.constant_like(0.044715, x))
    inner = operation.emit(
        "Mul",
        operation.emit("Add", x, scaled),
        operation.constant_like(math.sqrt(2 / math.pi), x),
    )
    one = operation.constant_like(1.0, x)
    gate = operation.emit("Add", operation.emit("Tanh", inner), one)
    half = operation.emit("Mul", x, operation.constant_like(0.5, x))
    return _like_operand(operation, operation.emit("Mul", half, gate))


def _real(operation: Operation) -> Value:
    """Return the operand of a real function; integers are converted to floats, as in C."""
    value = operation.inputs[0]
    is_whole = operation.dtype_of(value).kind in "iu"
    return operation.cast(value, np.float32) if is_whole else value


def _like_operand(operation: Operation, value: Value) -> Value:
    """Convert the result of a real function to the operand's type, and fit its shape."""
    return fit(operation, operation.cast(value, operation.dtype_of(operation.inputs[0])))
