"""Operators that return their input: copies, gradient marks, type conversions, output layers."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.dialects.mxnet.lowering.real_arithmetic import element_type, is_real
from passlib.dialects.mxnet.lowering.table import table
from passlib.lowering import Operation, Value

__all__ = ["amp_cast", "amp_multicast", "cast", "cast_storage", "identity"]


@table.register(
    "_copy",
    "identity",
    "BlockGrad",
    "stop_gradient",
    "make_loss",
    "MakeLoss",
    "_identity_with_attr_like_rhs",
    "_contrib_gradientmultiplier",
    "_copyto",
    "_CrossDeviceCopy",
    "LinearRegressionOutput",
    "_sparse_LinearRegressionOutput",
    "MAERegressionOutput",
    "_sparse_MAERegressionOutput",
    "SVMOutput",
    "IdentityAttachKLSparseReg",
)
def identity(op: Operation) -> Value:
    """Return the first input; other inputs and attributes affect only gradients and devices."""
    return op.emit("Identity", op.inputs[0])


@table.register("cast_storage")
def cast_storage(op: Operation) -> Value:
    """Return the input as a dense array, the only storage that ONNX computes with."""
    op.string("stype", choices=("default",))
    return op.emit("Identity", op.inputs[0])


@table.register("Cast", "cast", "_npi_cast", "_npx_cast")
def cast(op: Operation) -> Value:
    """Convert to ``dtype`` as C does: fractions are truncated, integers wrap."""
    return op.cast(op.inputs[0], element_type(op))


@table.register("amp_cast")
def amp_cast(op: Operation) -> Value:
    """Convert floating-point numbers to ``dtype``; integers stay as they are."""
    data, target = op.inputs[0], element_type(op)
    if is_real(op.dtype_of(data)) and is_real(target):
        return op.cast(data, target)
    return op.emit("Identity", data)


@table.register("amp_multicast")
def amp_multicast(op: Operation) -> Sequence[Value]:
    """Convert inputs to the widest type among them, or with ``cast_narrow`` the narrowest.

    Only float16 and float32 take part; inputs of other types stay as they are.
    """
    mixed = [value for value in op.inputs if op.dtype_of(value).name in ("float16", "float32")]
    if not mixed:
        return [op.emit("Identity", value) for value in op.inputs]
    choose = min if op.bool("cast_narrow", False) else max
    target = choose((op.dtype_of(value) for value in mixed), key=lambda dtype: dtype.itemsize)
    return [op.cast(v, target) if v in mixed else op.emit("Identity", v) for v in op.inputs]
