"""Concatenation with axes added first, and splitting along fixed axes."""

from __future__ import annotations

from functools import partial

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, reshaped, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.joining import split_along


def _at_least(op: Operation, value: Value, count: int) -> Value:
    """Add axes of size 1 in front; a third one is added behind."""
    rank = op.rank_of(value)
    if rank >= count:
        return value
    if count < 3:
        return op.emit("Unsqueeze", value, vector(op, *range(count - rank)))
    axes = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[rank]
    return op.emit("Unsqueeze", value, vector(op, *axes))


def _all_at_least(count: int, op: Operation) -> list[Value]:
    return [_at_least(op, value, count) for value in op.inputs]


for _count in (1, 2, 3):
    table.register(f"_np_atleast_{_count}d")(partial(_all_at_least, _count))


def _joined(op: Operation, parts: list[Value], axis: int) -> Value:
    if not parts:
        raise Misfit("there is nothing to join")
    return op.emit("Concat", *parts, axis=axis)


@table.register("_npi_concatenate")
def concatenate(op: Operation) -> Value:
    """Concatenate along ``axis``, or the flattened arrays for ``None``."""
    axis = op.optional_int("axis", 0)
    if axis is None:
        return _joined(op, [flattened(op, value) for value in op.inputs], 0)
    return _joined(op, op.inputs, op.axis(op.inputs[0], axis))


@table.register("_npi_vstack")
def vstack(op: Operation) -> Value:
    """Concatenate along the first axis; vectors are rows."""
    return _joined(op, _all_at_least(2, op), 0)


@table.register("_npi_hstack")
def hstack(op: Operation) -> Value:
    """Concatenate along the second axis, vectors along their only one."""
    parts = _all_at_least(1, op)
    return _joined(op, parts, int(op.rank_of(op.inputs[0]) > 1))


@table.register("_npi_dstack")
def dstack(op: Operation) -> Value:
    """Concatenate along the third axis."""
    return _joined(op, _all_at_least(3, op), 2)


@table.register("_npi_column_stack")
def column_stack(op: Operation) -> Value:
    """Concatenate along the second axis; vectors are columns."""
    parts = [
        reshaped(op, value, [-1, 1]) if op.rank_of(value) < 2 else value for value in op.inputs
    ]
    return _joined(op, parts, 1)


@table.register("_npi_hsplit")
def hsplit(op: Operation) -> list[Value]:
    """Split along the second axis, or along the only one."""
    return split_along(op, int(op.rank_of(op.inputs[0]) > 1))


@table.register("_npi_dsplit")
def dsplit(op: Operation) -> list[Value]:
    """Split along the third axis."""
    op.require_rank(op.inputs[0], least=3)
    return split_along(op, 2)
