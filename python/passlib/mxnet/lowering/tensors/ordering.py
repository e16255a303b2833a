"""Sorting, and the first k elements along an axis. Equal elements keep their order."""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import extent, flattened, gathered_shape, vector
from passlib.mxnet.lowering.real_arithmetic import element_type
from passlib.mxnet.lowering.table import table


def _line(op: Operation) -> tuple[Value, int]:
    """Return the data and the axis to sort along; flattened data for axis None."""
    data, axis = op.inputs[0], op.optional_int("axis", -1)
    if axis is None:
        return flattened(op, data), 0
    return data, op.axis(data, axis)


def _first(
    op: Operation, data: Value, axis: int, count: Value, *, ascending: bool
) -> tuple[Value, Value]:
    largest = int(not ascending)
    made = op.emit("TopK", data, count, axis=axis, largest=largest, sorted=1, outputs=2)
    return made[0], made[1]


@table.register("sort", "_npi_sort")
def sort(op: Operation) -> Value:
    """Sort along ``axis``, ascending unless ``is_ascend`` is false."""
    data, axis = _line(op)
    ascending = op.bool("is_ascend", True)
    return _first(op, data, axis, extent(op, data, axis), ascending=ascending)[0]


@table.register("argsort", "_npi_argsort")
def argsort(op: Operation) -> Value:
    """Return the positions that sort the data along ``axis``, as ``dtype``."""
    data, axis = _line(op)
    ascending = op.bool("is_ascend", True)
    places = _first(op, data, axis, extent(op, data, axis), ascending=ascending)[1]
    return op.cast(places, element_type(op, np.float32))


@table.register("topk", "_npx_topk")
def topk(op: Operation) -> Value | tuple[Value, Value]:
    """Find the ``k`` largest (smallest) along ``axis``: values, positions, both, or a mask.

    A ``k`` below 1 selects all. The mask has the shape and type of the data.
    """
    data, axis = _line(op)
    wanted = op.int("k", 1)
    kind = op.string("ret_typ", "indices", choices=("value", "indices", "mask", "both"))
    count = vector(op, wanted) if wanted >= 1 else extent(op, data, axis)
    values, places = _first(op, data, axis, count, ascending=op.bool("is_ascend", False))
    if kind == "value":
        return values
    if kind == "mask":
        return _mask(op, data, axis, values, places)
    places = op.cast(places, element_type(op, np.float32))
    return (values, places) if kind == "both" else places


def _mask(op: Operation, data: Value, axis: int, values: Value, places: Value) -> Value:
    zeros = op.emit("Expand", op.constant_like(0, data), op.emit("Shape", data))
    ones = op.emit("Expand", op.constant_like(1, data), op.emit("Shape", values))
    mask = op.emit("ScatterElements", zeros, places, ones, axis=axis)
    original = op.inputs[0]
    if data is original:
        return mask
    shape = gathered_shape(op, original, range(op.rank_of(original)))
    return op.emit("Reshape", mask, shape)
