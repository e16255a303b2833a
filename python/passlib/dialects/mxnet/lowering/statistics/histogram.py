"""Counts of numbers in intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.dialects.mxnet.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, vector

__all__ = ["histogram"]


@table.register("_histogram", "histogram", "_npi_histogram")
def histogram(op: Operation) -> Sequence[Value]:
    """Count numbers between edges: int64 counts (n,), and the edges (n + 1,).

    There are ``bin_cnt`` intervals of equal width over ``range``, or edges come as the second
    input. The last interval includes its end.
    """
    data = flattened(op, op.inputs[0])
    count = op.optional_int("bin_cnt")
    if count is None:
        edges = op.operands(2)[1]
        number = op.shape_of(edges, 1)[0]
    else:
        if op.attr("range", "None") == "None":
            op.unsupported("is required with bin_cnt", "range")
        low, high = op.floats("range")[:2]
        if count < 1 or low >= high:
            op.invalid("leaves no interval", "bin_cnt")
        op.affordable(count)
        steps = np.arange(count + 1)
        edges = op.constant_like((high * steps + low * (count - steps)) / count, data)
        number = count + 1
    column = op.emit("Unsqueeze", data, vector(op, 1))
    least = op.cast(op.emit("GreaterOrEqual", column, edges), np.int64)
    beyond = op.emit("ReduceSum", least, vector(op, 0), keepdims=0)
    last = op.emit("Slice", edges, vector(op, number - 1), vector(op, number))
    above = op.cast(op.emit("Greater", data, last), np.int64)
    over = op.emit("ReduceSum", above, vector(op, 0), keepdims=1)
    inner = op.emit("Slice", beyond, vector(op, 0), vector(op, number - 1))
    if number > 2:
        middle = op.emit("Slice", beyond, vector(op, 1), vector(op, number - 1))
        over = op.emit("Concat", middle, over, axis=0)
    return op.emit("Sub", inner, over), op.emit("Identity", edges)
