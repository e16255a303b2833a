"""Operators that return their input: copies, gradient marks, type conversions, output layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.real_arithmetic import element_type
from passlib.mxnet.lowering.table import table


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
)
def identity(op: Operation) -> Value:
    """Return the first input; other inputs and attributes affect only gradients and devices."""
    return op.emit("Identity", op.inputs[0])


@table.register("IdentityAttachKLSparseReg")
def sparsely_regularized(op: Operation) -> Value:
    """Return the first input, (N, C, ...); the regularization affects only the gradient."""
    op.require_rank(op.inputs[0], least=2)
    return op.emit("Identity", op.inputs[0])


@table.register("cast_storage")
def cast_storage(op: Operation) -> Value:
    """Return the input as a dense array, the only storage that ONNX computes with.

    The numbers of the sparse kinds that ``stype`` names are the same.
    """
    if op.string("stype", choices=("default", "row_sparse", "csr")) == "csr":
        op.require_rank(op.inputs[0], 2)
    return op.emit("Identity", op.inputs[0])


@table.register("Cast", "cast", "_npi_cast", "_npx_cast")
def cast(op: Operation) -> Value:
    """Convert to ``dtype`` as C does: fractions are truncated, integers wrap."""
    return op.cast(op.inputs[0], element_type(op))


@table.register("amp_cast")
def amp_cast(op: Operation) -> Value:
    """Convert float16, bfloat16 and float32 to ``dtype``; other types stay as they are."""
    data, target = op.inputs[0], element_type(op)
    return op.emit("Identity", data) if _is_fixed(op.dtype_of(data)) else op.cast(data, target)


def _is_fixed(dtype: np.dtype) -> bool:
    return dtype.name not in ("bfloat16", "float16", "float32")


@table.register("amp_multicast")
def amp_multicast(op: Operation) -> Sequence[Value]:
    """Convert inputs of float16 and float32 to one type; others stay as they are.

    It is float32 if there is any, else the type of the first input, whatever that is. With
    ``cast_narrow`` it is float16 if there is any, else nothing changes.
    """
    types = [op.dtype_of(value) for value in op.inputs]
    narrow = op.bool("cast_narrow", False)
    preferred = np.dtype(np.float16 if narrow else np.float32)
    if preferred not in types and narrow:
        return [op.emit("Identity", value) for value in op.inputs]
    target = preferred if preferred in types else types[0]
    return [
        op.emit("Identity", value) if _is_fixed(dtype) else op.cast(value, target)
        for value, dtype in zip(op.inputs, types, strict=True)
    ]
