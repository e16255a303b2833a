"""Connectionist temporal classification: the loss of a sequence without alignment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.table import table

_IMPOSSIBLE = -1e30
"""The logarithm of a probability of 0, finite so that differences stay numbers."""


@table.register("CTCLoss", "ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss", "_npx_ctc_loss")
def ctc_loss(op: Operation) -> Sequence[Value]:
    """Compute the negative log-likelihood of labels: (T, N, C) and (N, L) to (N,).

    The blank is class 0, labels end at 0 (``first``); or it is class C - 1, labels end at -1
    (``last``). Lengths of data and labels may be given. The forward recursion of Graves et al.
    (2006) runs over the labels with a blank before, between and after them. The hidden second
    output is the gradient.
    """
    data, labels, *lengths = op.operands(2, more=True) + op.inputs[2:]
    times, batch, classes = op.shape_of(data, 3)
    count = op.shape_of(labels, 2)[1]
    first = op.string("blank_label", "first", choices=("first", "last")) == "first"
    blank, end = (0, 0) if first else (classes - 1, -1)
    dtype = op.dtype_of(data)
    with_data = op.bool("use_data_lengths", False)
    data_lengths = op.cast(lengths.pop(0), np.int64) if with_data else vector(op, times)
    whole = op.cast(labels, np.int64)
    if op.bool("use_label_lengths", False):
        label_lengths = op.cast(lengths[0], np.int64)
    else:
        open_ = op.emit("Not", op.emit("Equal", whole, op.constant(end, "int64")))
        seen = op.emit("CumSum", op.cast(open_, np.int64), op.constant(1, "int64"))
        unbroken = op.emit("Equal", seen, op.constant(np.arange(1, count + 1)[None], "int64"))
        flags = op.cast(op.emit("And", unbroken, open_), np.int64)
        label_lengths = op.emit("ReduceSum", flags, vector(op, 1), keepdims=0)

    blanks = op.constant(np.full((batch, count, 1), blank), "int64")
    safe = op.emit("Clip", whole, op.constant(0, "int64"), op.constant(classes - 1, "int64"))
    pairs = op.emit("Concat", blanks, op.emit("Unsqueeze", safe, vector(op, 2)), axis=2)
    pairs = op.emit("Reshape", pairs, vector(op, batch, 2 * count))
    states = op.emit("Concat", pairs, op.constant(np.full((batch, 1), blank), "int64"), axis=1)
    scores = op.emit("LogSoftmax", data, axis=2)
    index = op.emit("Expand", op.emit("Unsqueeze", states, vector(op, 0)), vector(op, times, 1, 1))
    emitted = op.emit("GatherElements", scores, index, axis=2)
    last = _recursion(op, emitted, _skips(op, states, blank, batch), data_lengths)

    place = op.emit("Mul", label_lengths, op.constant(2, "int64"))
    ends = []
    for back in (0, 1):
        at = op.emit("Sub", place, op.constant(back, "int64"))
        column = op.emit("Unsqueeze", op.emit("Max", at, op.constant(0, "int64")), vector(op, 1))
        found = op.emit("GatherElements", last, column, axis=1)
        exists = op.emit(
            "GreaterOrEqual", op.emit("Unsqueeze", at, vector(op, 1)), op.constant(0, "int64")
        )
        ends.append(op.emit("Where", exists, found, op.constant(_IMPOSSIBLE, dtype)))
    both = op.emit("Concat", *ends, axis=1)
    loss = op.emit("Neg", op.emit("ReduceLogSumExp", both, vector(op, 1), keepdims=0))
    return loss, op.declare(dtype, (times, batch, classes), "the gradient is not provided")


def _skips(op: Operation, states: Value, blank: int, batch: int) -> Value:
    """Return 0 where a state may follow the last but one, else a large negative number."""
    dtype = op.dtype_of(op.inputs[0])
    size = op.shape_of(states)[1]
    if size < 3:
        return op.constant(np.full((batch, size), _IMPOSSIBLE), dtype)
    before = op.emit("Slice", states, vector(op, 0), vector(op, size - 2), vector(op, 1))
    now = op.emit("Slice", states, vector(op, 2), vector(op, size), vector(op, 1))
    barred = op.emit(
        "Or", op.emit("Equal", now, op.constant(blank, "int64")), op.emit("Equal", now, before)
    )
    none, free = op.constant(_IMPOSSIBLE, dtype), op.constant(0, dtype)
    start = op.constant(np.full((batch, 2), _IMPOSSIBLE), dtype)
    return op.emit("Concat", start, op.emit("Where", barred, none, free), axis=1)


def _recursion(op: Operation, emitted: Value, skips: Value, lengths: Value) -> Value:
    """Return the logarithms of the probabilities of all states after the last time: (N, S)."""
    times, batch, size = op.shape_of(emitted)
    dtype = op.dtype_of(emitted)
    start = np.full((batch, size), _IMPOSSIBLE)
    start[:, 0] = 0
    padding = [op.constant(np.full((batch, n), _IMPOSSIBLE), dtype) for n in (1, 2)]
    with op.body() as body:
        state = body.input("state", dtype, (batch, size))
        score = body.input("score", dtype, (batch, size))
        time = body.input("time", np.dtype(np.int64), ())
        ways = [state]
        for back, pad in enumerate(padding, 1):
            kept = op.emit(
                "Slice", state, vector(op, 0), vector(op, max(size - back, 0)), vector(op, 1)
            )
            moved = op.emit("Concat", pad, kept, axis=1)
            moved = op.emit("Slice", moved, vector(op, 0), vector(op, size), vector(op, 1))
            ways.append(moved if back == 1 else op.emit("Add", moved, skips))
        stacked = op.emit(
            "Concat", *(op.emit("Unsqueeze", way, vector(op, 2)) for way in ways), axis=2
        )
        total = op.emit("ReduceLogSumExp", stacked, vector(op, 2), keepdims=0)
        reached = op.emit("Add", total, score)
        running = op.emit("Unsqueeze", op.emit("Less", time, lengths), vector(op, 1))
        body.output(op.emit("Where", running, reached, state))
    return op.emit(
        "Scan",
        op.constant(start, dtype),
        emitted,
        op.constant(np.arange(times), "int64"),
        outputs=1,
        types=[TypeSpec(dtype, (batch, size))],
        body=body.graph(),
        num_scan_inputs=2,
    )[0]
