"""Elementwise operators."""

from __future__ import annotations

from passlib.families.dlprim.lowering.common import activate, floats, options_of
from passlib.families.dlprim.lowering.table import table
from passlib.lowering import Operation, Value


@table.register("Abs")
def absolute(op: Operation) -> Value:
    """Take the absolute value."""
    floats(op, op.inputs[0])
    return op.emit("Abs", op.inputs[0])


@table.register("Activation")
def activation(op: Operation) -> Value:
    """Apply relu, tanh, sigmoid, relu6 (0 to 6) or identity."""
    (data,) = op.operands(1)
    name = options_of(op)["activation"]
    if name == "identity":
        return op.emit("Identity", data)
    floats(op, data)
    return activate(op, data, name)


@table.register("Elementwise")
def elementwise(op: Operation) -> Value:
    """Combine two tensors, with NumPy's broadcasting, then apply ``activation``.

    ``sum`` is ``coef1 * a + coef2 * b``, ``prod`` is ``coef1 * coef2 * a * b``, ``max`` the
    larger of ``coef1 * a`` and ``coef2 * b``.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    left, right = op.operands(2)
    first, second = options["coef1"], options["coef2"]
    if options["operation"] == "prod":
        value = _scaled(op, op.emit("Mul", left, right), first * second)
    else:
        kind = "Add" if options["operation"] == "sum" else "Max"
        value = op.emit(kind, _scaled(op, left, first), _scaled(op, right, second))
    return activate(op, value, options["activation"])


@table.register("Hardtanh")
def hardtanh(op: Operation) -> Value:
    """Clip to ``min_val`` and ``max_val``; if these are swapped, ``min_val`` wins."""
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    below = op.emit("Min", data, op.constant_like(options["max_val"], data))
    return op.emit("Max", below, op.constant_like(options["min_val"], data))


@table.register("Threshold")
def threshold(op: Operation) -> Value:
    """Return 1 where an element is above ``threshold``, otherwise 0."""
    (data,) = op.operands(1)
    floats(op, data)
    above = op.emit("Greater", data, op.constant_like(options_of(op)["threshold"], data))
    return op.cast(above, op.dtype_of(data))


def _scaled(op: Operation, value: Value, factor: float) -> Value:
    return value if factor == 1 else op.emit("Mul", value, op.constant_like(factor, value))
