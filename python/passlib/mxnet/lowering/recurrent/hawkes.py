"""The likelihood of self-exciting point processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.table import table


@table.register("_contrib_hawkesll")
def hawkes_likelihood(op: Operation) -> Sequence[Value]:
    """Compute log-likelihoods (N,) and last states (N, K) of Hawkes processes.

    Excitations decay exponentially. Inputs: background rates (N, K), excitations and decays (K,),
    states (N, K), times between events and their marks (N, T), numbers of events (N,), ends of
    the observation (N,).
    """
    rates, excitation, decay, state, lags, marks, lengths, ends = op.operands(8)
    batch, kinds = op.shape_of(rates, 2)
    times = op.shape_of(lags, 2)[1]
    dtype = op.dtype_of(rates)
    rows = [_by_time(op, value, times, batch) for value in (lags, op.cast(marks, np.int64))]
    states = [
        op.constant(np.zeros((batch, 1)), dtype),
        op.constant(np.zeros((batch, kinds)), dtype),
        state,
        op.constant(np.zeros((batch, 1)), dtype),
    ]
    count = op.emit("Unsqueeze", op.cast(lengths, np.int64), vector(op, 1))
    kind = op.constant(np.arange(kinds)[None], "int64")
    zero, one = op.constant(0, dtype), op.constant(1, dtype)
    with op.body() as body:
        clock, last, held, total = (body.input("state", v.dtype, v.shape) for v in states)
        lag, mark = (body.input("event", v.dtype, (batch, 1)) for v in rows)
        turn = body.input("turn", np.dtype(np.int64), ())
        running = op.emit("Less", turn, count)
        now = op.emit("Add", clock, lag)
        gain, faded, compensated = _elapsed(
            op, op.emit("Sub", now, last), held, (rates, excitation, decay)
        )
        hit = op.emit("And", op.emit("Equal", mark, kind), running)
        term = op.emit("Sub", op.emit("Log", gain), compensated)
        term = op.emit("Where", hit, term, zero)
        added = op.emit("ReduceSum", term, vector(op, 1), keepdims=1)
        body.output(op.emit("Where", running, now, clock))
        body.output(op.emit("Where", hit, now, last))
        body.output(op.emit("Where", hit, op.emit("Add", faded, one), held))
        body.output(op.emit("Add", total, added))
    turns = op.constant(np.arange(times), "int64")
    _, last, held, total = op.emit(
        "Scan",
        *states,
        *rows,
        turns,
        outputs=4,
        types=[TypeSpec(value.dtype, value.shape) for value in states],
        body=body.graph(),
        num_scan_inputs=3,
    )
    end = op.emit("Unsqueeze", ends, vector(op, 1))
    rest = _elapsed(op, op.emit("Sub", end, last), held, (rates, excitation, decay))
    missed = op.emit("ReduceSum", rest[2], vector(op, 1), keepdims=0)
    total = op.emit("Squeeze", total, vector(op, 1))
    return op.emit("Sub", total, missed), rest[1]


def _by_time(op: Operation, value: Value, times: int, batch: int) -> Value:
    turned = op.emit("Transpose", value, perm=[1, 0])
    return op.emit("Reshape", turned, vector(op, times, batch, 1))


def _elapsed(
    op: Operation, gap: Value, state: Value, parameters: tuple[Value, Value, Value]
) -> tuple[Value, Value, Value]:
    """Return, after a time without events, the intensity, the faded state, the compensator."""
    rates, excitation, decay = parameters
    fading = op.emit("Exp", op.emit("Neg", op.emit("Mul", decay, gap)))
    faded = op.emit("Mul", state, fading)
    excited = op.emit("Mul", op.emit("Mul", excitation, decay), faded)
    intensity = op.emit("Add", rates, excited)
    spent = op.emit("Mul", excitation, op.emit("Sub", state, faded))
    return intensity, faded, op.emit("Add", op.emit("Mul", rates, gap), spent)
