"""Greedy matching of rows to columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.table import table


@table.register("_contrib_bipartite_matching")
def bipartite_matching(op: Operation) -> Sequence[Value]:
    """Match rows and columns of scores (..., N, M), best first: columns (..., N), rows (..., M).

    A pair counts if neither side is matched yet and its score is above ``threshold`` (below it
    with ``is_ascend``). ``topk`` ends the matching after one pair more than it states, as in
    MXNet 1.9.1. Unmatched sides are -1.
    """
    (data,) = op.operands(1)
    *lead, rows, columns = op.shape_of(data, least=2)
    dtype, count = op.dtype_of(data), rows * columns
    ascending = op.bool("is_ascend", False)
    flat = op.emit("Reshape", data, vector(op, -1, count))
    scores, places = op.emit(
        "TopK", flat, vector(op, count), outputs=2, axis=1, largest=int(not ascending)
    )
    threshold = op.constant_like(op.float("threshold"), scores)
    valid = op.emit("Less" if ascending else "Greater", scores, threshold)
    wide = op.constant(columns, "int64")
    sides = [op.emit("Div", places, wide), op.emit("Mod", places, wide)]
    batch = op.shape_of(flat)[0]
    most = op.int("topk", -1)
    starts = [np.full((batch, size), -1) for size in (rows, columns)]
    states = [op.constant(start, "int64") for start in (*starts, np.zeros((batch, 1)))]
    with op.body() as body:
        turn = body.input("turn", np.dtype(np.int64), ())
        goes_on = body.input("goes_on", np.dtype(bool), ())
        held = [body.input("state", value.dtype, value.shape) for value in states]
        at = op.emit("Reshape", turn, vector(op, 1))
        pair = [op.emit("Gather", side, at, axis=1) for side in sides]
        free = op.emit("Gather", valid, at, axis=1)
        for matched, side in zip(held, pair, strict=False):
            taken = op.emit("GatherElements", matched, side, axis=1)
            free = op.emit("And", free, op.emit("Less", taken, op.constant(0, "int64")))
        if most > 0:
            free = op.emit("And", free, op.emit("LessOrEqual", held[2], op.constant(most, "int64")))
        ends = []
        for matched, side, other in zip(held, pair, reversed(pair), strict=False):
            old = op.emit("GatherElements", matched, side, axis=1)
            ends.append(
                op.emit(
                    "ScatterElements", matched, side, op.emit("Where", free, other, old), axis=1
                )
            )
        ends.append(op.emit("Add", held[2], op.cast(free, np.int64)))
        body.output(goes_on)
        for end in ends:
            body.output(end)
    made = op.emit(
        "Loop",
        op.constant(count, "int64"),
        op.constant(True),
        *states,
        outputs=3,
        types=[TypeSpec(value.dtype, value.shape) for value in states],
        body=body.graph(),
    )
    return [
        op.cast(op.emit("Reshape", value, vector(op, *lead, size)), dtype)
        for value, size in zip(made, (rows, columns), strict=False)
    ]
