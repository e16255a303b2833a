"""Operators that move elements, and Parameter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.families.dlprim.lowering.common import options_of, size_of, vector_of_one
from passlib.families.dlprim.lowering.table import table
from passlib.families.dlprim.shape_rules import squeezed
from passlib.lowering import Operation, Value
from passlib.lowering.misfit import Misfit


@table.register("Concat")
def concat(op: Operation) -> Value:
    """Concatenate tensors along axis ``dim``."""
    dim = options_of(op)["dim"]
    if not 0 <= dim < op.rank_of(op.inputs[0]):
        op.unsupported(f"there is no axis {dim}", "dim")
    return op.emit("Concat", *op.inputs, axis=dim)


@table.register("Slice")
def slice_(op: Operation) -> Value:
    """Return elements ``begin`` up to ``end`` along axis ``dim``; end -1 includes the last."""
    (data,) = op.operands(1)
    options = options_of(op)
    dim, begin, end = options["dim"], options["begin"], options["end"]
    if not 0 <= dim < op.rank_of(data):
        op.unsupported(f"there is no axis {dim}", "dim")
    size = size_of(op, data, dim)
    if not 0 <= begin < (size if end == -1 else end) <= size:
        op.unsupported(f"cannot take {begin} to {end} of {size} elements", "end")
    bounds = (begin, size if end == -1 else end, dim)
    return op.emit("Slice", data, *(op.constant([bound], np.int64) for bound in bounds))


@table.register("Flatten")
def flatten(op: Operation) -> Value:
    """Reshape (N, ...) to a matrix of N rows."""
    return op.emit("Flatten", op.inputs[0], axis=1)


@table.register("Squeeze")
def squeeze(op: Operation) -> Value:
    """Remove the axes ``dims``, or with ``all`` every axis of size 1; if none is left, keep (1)."""
    (data,) = op.operands(1)
    options = options_of(op)
    shape: Sequence[int] = op.shape_of(data) if options["all"] else _ones_where_open(op, data)
    try:
        axes = squeezed(options, shape)
    except Misfit as error:
        op.unsupported(str(error), "dims")
    if not axes:
        return op.emit("Identity", data)
    result = op.emit("Squeeze", data, op.constant(axes, np.int64))
    return vector_of_one(op, result) if len(axes) == len(shape) else result


def _ones_where_open(op: Operation, data: Value) -> list[int]:
    """Return a shape to check ``dims`` with; ONNX Runtime checks unknown sizes."""
    op.rank_of(data)
    return [1 if size is None else size for size in data.shape or ()]


@table.register("Reshape")
def reshape(op: Operation) -> Value:
    """Reshape to ``dims``: 0 copies the size of the input, -1 follows from the other sizes."""
    return op.emit("Reshape", op.inputs[0], op.constant(options_of(op)["dims"], np.int64))


@table.register("Parameter")
def parameter(op: Operation) -> Value:
    """Return the parameter itself."""
    return op.emit("Identity", op.inputs[0])
