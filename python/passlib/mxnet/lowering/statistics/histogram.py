"""Counts of numbers in intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, vector
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.lowering.table import table


@table.register("_histogram", "histogram", "_npi_histogram")
def histogram(op: Operation) -> Sequence[Value]:
    """Count numbers between edges: int64 counts (n,), and the edges (n + 1,).

    There are ``bin_cnt`` intervals of equal width over ``range``, or edges come as the second
    input. The last interval includes its end. Edges between integers are truncated to integers.
    """
    data = flattened(op, op.inputs[0])
    count = op.optional_int("bin_cnt")
    if count is None:
        edges = op.operands(2)[1]
        number = op.shape_of(edges, 1)[0]
    else:
        if op.attr("range", "None") == "None":
            op.unsupported("is required with bin_cnt", "range")
        bounds = op.floats("range")
        if len(bounds) != 2:
            op.invalid("does not have 2 numbers", "range")
        low, high = bounds
        if count < 1 or not low < high:
            op.invalid("leaves no interval", "bin_cnt")
        op.affordable(count)
        steps = np.arange(count + 1)
        exact = (high * steps + low * (count - steps)) / count
        if not is_real(op.dtype_of(data)):
            edges = op.constant_like(np.trunc(exact), data)
            return _counted_integers(op, data, edges, (low, high, count)), edges
        edges = op.constant_like(exact, data)
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


def _counted_integers(
    op: Operation, data: Value, edges: Value, bins: tuple[float, float, int]
) -> Value:
    """Count integers (n,) in intervals with truncated edges, of which some are equal.

    As in MXNet, a number belongs to the interval of exact edges, or to the one next to it that
    its truncated edges require.
    """
    low, high, count = bins
    wide = op.cast(data, np.float64)
    shifted = op.emit("Mul", op.emit("Sub", wide, op.constant(low)), op.constant(float(count)))
    exact = op.emit("Floor", op.emit("Div", shifted, op.constant(high - low)))
    limits = op.constant(0.0), op.constant(count - 1.0)
    place = op.cast(op.emit("Clip", exact, *limits), np.int64)
    below = op.emit("Less", data, op.emit("Gather", edges, place))
    place = op.emit("Sub", place, op.cast(below, np.int64))
    following = op.emit("Gather", edges, op.emit("Add", place, op.constant(1)))
    above = op.emit("And", op.emit("GreaterOrEqual", data, following), _before(op, place, count))
    place = op.emit("Add", place, op.cast(above, np.int64))
    inside = op.emit(
        "And",
        op.emit("GreaterOrEqual", wide, op.constant(low)),
        op.emit("LessOrEqual", wide, op.constant(high)),
    )
    place = op.emit("Where", inside, place, op.constant(-1))
    found = op.emit("Equal", op.emit("Unsqueeze", place, vector(op, 1)), vector(op, *range(count)))
    return op.emit("ReduceSum", op.cast(found, np.int64), vector(op, 0), keepdims=0)


def _before(op: Operation, place: Value, count: int) -> Value:
    return op.emit("Less", place, op.constant(count - 1))
