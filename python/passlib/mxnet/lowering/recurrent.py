"""Recurrent layers and operators on sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.graph.attributes import Attributes
from passlib.lowering import Operation, Shape, TypeSpec, Value
from passlib.lowering.extents import extent, places, reshaped, vector
from passlib.mxnet.lowering.table import table

GATES: Final = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
"""Number of gates by the attribute ``mode``."""


@dataclass(frozen=True)
class Packing:
    """Sizes of an RNN, which determine the layout of its weights.

    The matrices of every layer and direction (by input, by state, projection) come first, then
    the two biases of every layer and direction.
    """

    gates: int
    state: int
    layers: int
    directions: int
    inputs: int
    projection: int | None

    @classmethod
    def of(cls, at: Attributes, inputs: int) -> Packing:
        """Read the sizes from the attributes of a node.

        Parameters
        ----------
        inputs : int
            Size of the last axis of the data.
        """
        mode = at.string("mode", choices=tuple(GATES))
        for name in ("state_size", "num_layers"):
            if at.int(name) < 1:
                at.invalid("must be at least 1", name)
        return cls(
            gates=GATES[mode],
            state=at.int("state_size"),
            layers=at.int("num_layers"),
            directions=1 + at.bool("bidirectional", False),
            inputs=inputs,
            projection=at.optional_int("projection_size") if mode == "lstm" else None,
        )

    @property
    def rows(self) -> int:
        """Rows of the states: one for each direction of each layer."""
        return self.layers * self.directions

    @property
    def recurrent(self) -> int:
        """Size of the recurrent input: the state, or its projection."""
        return self.projection or self.state

    def shapes(self) -> list[list[tuple[int, ...]]]:
        """Return the shapes of the matrices of each layer and direction, in order."""
        rows = self.gates * self.state
        result: list[list[tuple[int, ...]]] = []
        for layer in range(self.layers):
            width = self.recurrent * self.directions if layer else self.inputs
            matrices: list[tuple[int, ...]] = [(rows, width), (rows, self.recurrent)]
            if self.projection:
                matrices.append((self.projection, self.state))
            result += [matrices] * self.directions
        return result

    @property
    def size(self) -> int:
        """Number of all weights."""
        rows = self.gates * self.state
        fixed = rows * (self.recurrent + 2) + (self.projection or 0) * self.state
        later = (self.layers - 1) * rows * self.recurrent * self.directions
        return self.directions * (self.layers * fixed + rows * self.inputs + later)


def projected_lstm(
    op: Operation,
    packing: Packing,
    weights: Sequence[DirectionWeights],
    sequence: Value,
    states: Sequence[Value],
) -> tuple[Value, list[Value]]:
    """Run one layer, in each of its directions.

    ``sequence`` is (T, B, I), the states are (directions, B, R) and (directions, B, H). Returns
    the sequence (T, B, directions * R) and the final states.
    """
    time, batch = (sequence.shape or (None, None))[:2]
    dtype = op.dtype_of(sequence)
    state, cell = (batch, packing.recurrent), (batch, packing.state)
    types = [TypeSpec(dtype, shape) for shape in (state, cell, (time, *state))]
    made = []
    for direction, each in enumerate(weights):
        index = op.constant(direction, "int64")
        first = [op.emit("Gather", value, index, axis=0) for value in states]
        products = sequence @ op.emit("Transpose", each.input, perm=[1, 0])
        made.append(
            op.emit(
                "Scan",
                *first,
                products + (each.input_bias + each.state_bias),
                outputs=3,
                types=types,
                body=_step(op, each, state, cell),
                num_scan_inputs=1,
                scan_input_directions=[direction],
                scan_output_directions=[direction],
            )
        )
    finals = [_stacked(op, [values[place] for values in made]) for place in (0, 1)]
    return op.emit("Concat", *(values[2] for values in made), axis=2), finals


def _step(op: Operation, weights: DirectionWeights, state: Shape, cell: Shape) -> Any:
    """Build one step: state (B, R), cell (B, H) and input products (B, 4 * H) to the next ones."""
    assert weights.projection is not None
    dtype = op.dtype_of(weights.state)
    by_state = op.emit("Transpose", weights.state, perm=[1, 0])
    project = op.emit("Transpose", weights.projection, perm=[1, 0])
    with op.body() as body:
        old, held = body.input("state", dtype, state), body.input("cell", dtype, cell)
        products = body.input("products", dtype, None)
        gates = op.emit("Split", products + old @ by_state, outputs=4, axis=1, num_outputs=4)
        added, kept, output = (op.emit("Sigmoid", gates[place]) for place in (0, 1, 3))
        next_cell = kept * held + added * op.emit("Tanh", gates[2])
        next_state = (output * op.emit("Tanh", next_cell)) @ project
        for value in (next_state, next_cell, next_state):
            body.output(value)
    return body.graph()


class DirectionWeights(NamedTuple):
    """Weights of one direction of one layer; G gates, H state size, R recurrent size, I inputs."""

    input: Value
    """(G * H, I)"""
    state: Value
    """(G * H, R)"""
    projection: Value | None
    """(R, H), if there is a projection."""
    input_bias: Value
    """(G * H,)"""
    state_bias: Value
    """(G * H,)"""


def unpack(op: Operation, packing: Packing, packed: Value) -> list[DirectionWeights]:
    """Cut the vector into the weights of each layer and direction.

    Raises `UnsupportedError` if the size of the vector does not match the packing.
    """
    if op.shape_of(packed) != (packing.size,):
        op.unsupported(
            f"its weights have shape {op.shape_of(packed)}, its sizes require ({packing.size},)"
        )
    at = 0

    def cut(*shape: int) -> Value:
        nonlocal at
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        start, at = at, at + count
        return op.emit("Reshape", op.emit("Slice", packed, [start], [at], [0]), shape)

    matrices = [[cut(*shape) for shape in group] for group in packing.shapes()]
    rows = packing.gates * packing.state
    return [
        DirectionWeights(
            group[0], group[1], group[2] if packing.projection else None, cut(rows), cut(rows)
        )
        for group in matrices
    ]


_CREATORS = {"_zeros": 0.0, "_ones": 1.0}


@dataclass(frozen=True)
class _Cell:
    """The ONNX form of one mode of MXNet's RNN."""

    op_type: str
    gates: tuple[int, ...]
    """Position in MXNet's weights of each of ONNX's gates."""
    activation: str = ""


_CELLS = {
    "rnn_tanh": _Cell("RNN", (0,), "Tanh"),
    "rnn_relu": _Cell("RNN", (0,), "Relu"),
    "gru": _Cell("GRU", (1, 0, 2)),
    "lstm": _Cell("LSTM", (0, 3, 1, 2)),
}


@table.register("RNN", "_npx_rnn")
def rnn(op: Operation) -> Sequence[Value]:
    """Run stacked recurrent layers over (T, B, I).

    Inputs: data, all weights as one vector (see `Packing`), the initial state (layers *
    directions, B, state_size), for lstm the initial cell, and with ``use_sequence_length`` the
    lengths (B,). Outputs: (T, B, directions * state_size), and with ``state_outputs`` the final
    state and cell. The gates are, in order, r z n for gru (n applies r to the recurrent product
    with its bias) and i f c o for lstm. In training, dropout ``p`` acts between the layers.
    """
    mode = op.string("mode", choices=tuple(GATES))
    for name in ("lstm_state_clip_min", "lstm_state_clip_max"):
        if op.optional_float(name) is not None:
            op.unsupported("ONNX cannot clip the cell of a fused layer", name)
    op.require_rank(op.inputs[0], 3)
    width = op.size_of(op.inputs[0], 2)
    cell = _CELLS[mode]
    packing = Packing.of(op, width)
    weights = unpack(op, packing, op.inputs[1])
    initial = [_initial(op, 2, packing, packing.recurrent)]
    if mode == "lstm":
        initial.append(_initial(op, 3, packing, packing.state))
    lengths = None
    if op.bool("use_sequence_length", False):
        lengths = op.cast(op.inputs[2 + len(initial)], "int32")
    if packing.projection is not None and lengths is not None:
        op.unsupported("is not supported with a projection", "use_sequence_length")

    sequence = op.inputs[0]
    last: list[list[Value]] = [[] for _ in initial]
    for layer in range(packing.layers):
        if layer and op.train and op.float("p", 0.0):
            ratio = op.constant(op.float("p"), "float32")
            sequence = op.emit("Dropout", sequence, ratio, op.constant(True))
        span = slice(layer * packing.directions, (layer + 1) * packing.directions)
        states = [_rows(op, state, span) for state in initial]
        if packing.projection is None:
            sequence, finals = _layer(op, cell, packing, weights[span], sequence, states, lengths)
        else:
            sequence, finals = projected_lstm(op, packing, weights[span], sequence, states)
        for collected, final in zip(last, finals, strict=True):
            collected.append(final)
    results = [sequence]
    if op.bool("state_outputs", False):
        results += [op.emit("Concat", *finals, axis=0) for finals in last]
    return results


@table.register("_rnn_param_concat")
def rnn_param_concat(op: Operation) -> Value:
    """Concatenate the flattened weights of an RNN along ``dim``."""
    return op.emit("Concat", *op.inputs, axis=op.int("dim", 1))


def _initial(op: Operation, index: int, packing: Packing, size: int) -> Value:
    """Return an initial state; one created with batch size 0 takes the batch size of the data."""
    state, data = op.inputs[index], op.inputs[0]
    value = _CREATORS.get(op.node.inputs[index].node.op)
    batch = None if data.shape is None else data.shape[1]
    if value is None or state.shape is None or state.shape[1:2] not in ((0,), (None,)):
        return state
    if batch is None:
        return state
    op.affordable(packing.layers * packing.directions, batch, size)
    full = np.full((packing.layers * packing.directions, batch, size), value)
    return op.constant_like(full, op.inputs[0])


def _layer(
    op: Operation,
    cell: _Cell,
    packing: Packing,
    weights: Sequence[DirectionWeights],
    sequence: Value,
    states: Sequence[Value],
    lengths: Value | None,
) -> tuple[Value, list[Value]]:
    directions = packing.directions
    by_input = [_reordered(op, each.input, cell) for each in weights]
    by_state = [_reordered(op, each.state, cell) for each in weights]
    pairs = ((each.input_bias, each.state_bias) for each in weights)
    biases = [
        op.emit("Concat", *(_reordered(op, bias, cell) for bias in pair), axis=0) for pair in pairs
    ]
    made = op.emit(
        cell.op_type,
        sequence,
        _stacked(op, by_input),
        _stacked(op, by_state),
        _stacked(op, biases),
        lengths,
        *states,
        outputs=1 + len(states),
        hidden_size=packing.state,
        direction="bidirectional" if directions == 2 else "forward",
        activations=[cell.activation] * directions if cell.activation else None,
        linear_before_reset=1 if cell.op_type == "GRU" else None,
    )
    together = op.emit("Transpose", made[0], perm=[0, 2, 1, 3])
    return reshaped(op, together, [(0,), (1,), directions * packing.state]), made[1:]


def _reordered(op: Operation, weight: Value, cell: _Cell) -> Value:
    if len(cell.gates) == 1:
        return weight
    gates = op.emit("Split", weight, outputs=len(cell.gates), axis=0, num_outputs=len(cell.gates))
    return op.emit("Concat", *(gates[place] for place in cell.gates), axis=0)


def _stacked(op: Operation, values: Sequence[Value]) -> Value:
    first = vector(op, 0)
    raised = [op.emit("Unsqueeze", value, first) for value in values]
    return raised[0] if len(raised) == 1 else op.emit("Concat", *raised, axis=0)


def _rows(op: Operation, state: Value, span: slice) -> Value:
    if op.size_of(state, 0) == span.stop - span.start:
        return state
    start, stop = (vector(op, bound) for bound in (span.start, span.stop))
    return op.emit("Slice", state, start, stop, [0])


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
    length = op.emit("Reshape", op.inputs[1], length_shape)
    steps = op.cast(places(op, data, axis), op.dtype_of(length))
    inside = op.emit("Reshape", steps, time_shape) < length
    return op.where(inside, data, op.float("value", 0.0))


@table.register("SequenceLast")
def sequence_last(op: Operation) -> Value:
    """Take the last step of each sequence.

    ``data`` (T, B, ...) or, with ``axis=1``, (B, T, ...); the result is (B, ...).
    """
    data = op.inputs[0]
    axis = _time_axis(op, choices=(0, 1))
    if not op.bool("use_sequence_length", False):
        return op.emit("Gather", data, op.constant(-1, "int64"), axis=axis)
    last = op.cast(op.inputs[1], "int64") - 1
    if axis == 0:
        data = op.emit("Transpose", data, perm=[1, 0, *range(2, op.rank_of(data))])
    return op.emit("GatherND", data, op.emit("Unsqueeze", last, [1]), batch_dims=1)


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
        open_ = ~whole.equals(end)
        seen = op.emit("CumSum", op.cast(open_, np.int64), op.constant(1, "int64"))
        flags = op.cast(seen.equals(np.arange(1, count + 1)[None]) & open_, np.int64)
        label_lengths = op.emit("ReduceSum", flags, [1], keepdims=0)

    blanks = op.constant(np.full((batch, count, 1), blank), "int64")
    safe = op.emit("Clip", whole, 0, classes - 1)
    pairs = op.emit("Concat", blanks, op.emit("Unsqueeze", safe, [2]), axis=2)
    pairs = op.emit("Reshape", pairs, [batch, 2 * count])
    states = op.emit("Concat", pairs, op.constant(np.full((batch, 1), blank), "int64"), axis=1)
    scores = op.emit("LogSoftmax", data, axis=2)
    index = op.emit("Expand", op.emit("Unsqueeze", states, [0]), [times, 1, 1])
    emitted = op.emit("GatherElements", scores, index, axis=2)
    last = _recursion(op, emitted, _skips(op, states, blank, batch), data_lengths)

    place = label_lengths * 2
    ends = []
    for back in (0, 1):
        at = place - back
        column = op.emit("Unsqueeze", op.emit("Max", at, 0), [1])
        found = op.emit("GatherElements", last, column, axis=1)
        ends.append(op.where(op.emit("Unsqueeze", at, [1]) >= 0, found, _IMPOSSIBLE))
    loss = -op.emit("ReduceLogSumExp", op.emit("Concat", *ends, axis=1), [1], keepdims=0)
    return loss, op.declare(dtype, (times, batch, classes), "the gradient is not provided")


def _skips(op: Operation, states: Value, blank: int, batch: int) -> Value:
    """Return 0 where a state may follow the last but one, else a large negative number."""
    dtype = op.dtype_of(op.inputs[0])
    size = op.shape_of(states)[1]
    if size < 3:
        return op.constant(np.full((batch, size), _IMPOSSIBLE), dtype)
    before = op.emit("Slice", states, [0], [size - 2], [1])
    now = op.emit("Slice", states, [2], [size], [1])
    barred = now.equals(blank) | now.equals(before)
    none, free = op.constant(_IMPOSSIBLE, dtype), op.constant(0, dtype)
    start = op.constant(np.full((batch, 2), _IMPOSSIBLE), dtype)
    return op.emit("Concat", start, op.where(barred, none, free), axis=1)


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
            kept = op.emit("Slice", state, [0], [max(size - back, 0)], [1])
            moved = op.emit("Concat", pad, kept, axis=1)
            moved = op.emit("Slice", moved, [0], [size], [1])
            ways.append(moved if back == 1 else moved + skips)
        stacked = op.emit("Concat", *(op.emit("Unsqueeze", way, [2]) for way in ways), axis=2)
        reached = op.emit("ReduceLogSumExp", stacked, [2], keepdims=0) + score
        body.output(op.where(op.emit("Unsqueeze", time < lengths, [1]), reached, state))
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
    count = op.emit("Unsqueeze", op.cast(lengths, np.int64), [1])
    kind = op.constant(np.arange(kinds)[None], "int64")
    zero, one = op.constant(0, dtype), op.constant(1, dtype)
    with op.body() as body:
        clock, last, held, total = (body.input("state", v.dtype, v.shape) for v in states)
        lag, mark = (body.input("event", v.dtype, (batch, 1)) for v in rows)
        turn = body.input("turn", np.dtype(np.int64), ())
        running = turn < count
        now = clock + lag
        gain, faded, compensated = _elapsed(op, now - last, held, (rates, excitation, decay))
        hit = mark.equals(kind) & running
        term = op.emit("Log", gain) - compensated
        term = op.where(hit, term, zero)
        added = op.emit("ReduceSum", term, [1], keepdims=1)
        body.output(op.where(running, now, clock))
        body.output(op.where(hit, now, last))
        body.output(op.where(hit, faded + one, held))
        body.output(total + added)
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
    end = op.emit("Unsqueeze", ends, [1])
    rest = _elapsed(op, end - last, held, (rates, excitation, decay))
    missed = op.emit("ReduceSum", rest[2], [1], keepdims=0)
    total = op.emit("Squeeze", total, [1])
    return total - missed, rest[1]


def _by_time(op: Operation, value: Value, times: int, batch: int) -> Value:
    return op.emit("Reshape", op.emit("Transpose", value, perm=[1, 0]), [times, batch, 1])


def _elapsed(
    op: Operation, gap: Value, state: Value, parameters: tuple[Value, Value, Value]
) -> tuple[Value, Value, Value]:
    """Return, after a time without events, the intensity, the faded state, the compensator."""
    rates, excitation, decay = parameters
    faded = state * op.emit("Exp", -(decay * gap))
    return rates + excitation * decay * faded, faded, rates * gap + excitation * (state - faded)
