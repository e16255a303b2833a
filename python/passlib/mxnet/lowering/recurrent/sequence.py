"""Operators on batches of sequences of different lengths."""

from __future__ import annotations

from passlib.lowering import Operation, Value
from passlib.lowering.extents import extent, places, vector
from passlib.mxnet.lowering.table import table


@table.register("SequenceMask", "_npx_sequence_mask")
def sequence_mask(op: Operation) -> Value:
    """Overwrite the elements after the end of each sequence with ``value``.

    ``data`` (T, B, ...) or, with ``axis=1``, (B, T, ...); ``sequence_length`` (B,).
    """
    data = op.inputs[0]
    axis = _time_axis(op, choices=(0, 1))
    if not op.bool("use_sequence_length", False):
        return op.emit("Identity", data)
    trailing = [1] * (op.rank_of(data) - 2)
    length_shape = [1, -1, *trailing] if axis == 0 else [-1, 1, *trailing]
    time_shape = [-1, 1, *trailing] if axis == 0 else [1, -1, *trailing]
    length = op.emit("Reshape", op.inputs[1], vector(op, *length_shape))
    steps = op.cast(places(op, data, axis), op.dtype_of(length))
    time = op.emit("Reshape", steps, vector(op, *time_shape))
    inside = op.emit("Less", time, length)
    return op.emit("Where", inside, data, op.constant_like(op.float("value", 0.0), data))


@table.register("SequenceLast")
def sequence_last(op: Operation) -> Value:
    """Take the last step of each sequence.

    ``data`` (T, B, ...) or, with ``axis=1``, (B, T, ...); the result is (B, ...).
    """
    data = op.inputs[0]
    axis = _time_axis(op, choices=(0, 1))
    if not op.bool("use_sequence_length", False):
        return op.emit("Gather", data, op.constant(-1, "int64"), axis=axis)
    last = op.emit("Sub", op.cast(op.inputs[1], "int64"), op.constant(1, "int64"))
    if axis == 0:
        rank = op.rank_of(data)
        data = op.emit("Transpose", data, perm=[1, 0, *range(2, rank)])
    index = op.emit("Unsqueeze", last, vector(op, 1))
    return op.emit("GatherND", data, index, batch_dims=1)


@table.register("SequenceReverse")
def sequence_reverse(op: Operation) -> Value:
    """Reverse each sequence up to its length: ``data`` (T, B, ...), shape unchanged."""
    data = op.inputs[0]
    axis = _time_axis(op, choices=(0,))
    if op.bool("use_sequence_length", False):
        lengths = op.cast(op.inputs[1], "int64")
    else:
        lengths = op.emit("Expand", extent(op, data, 0), extent(op, data, 1))
    return op.emit("ReverseSequence", data, lengths, time_axis=axis, batch_axis=1)


def _time_axis(op: Operation, choices: tuple[int, ...]) -> int:
    axis = op.int("axis", 0)
    if axis not in choices:
        op.invalid(f"the time axis must be one of {choices}", "axis")
    if op.rank_of(op.inputs[0]) < 2:
        op.invalid("requires an input of at least two axes, time and batch")
    return axis
