"""The fused recurrent layers of the operator RNN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import reshaped, vector
from passlib.mxnet.lowering.recurrent.packing import GATES, Packing
from passlib.mxnet.lowering.recurrent.projection import projected_lstm
from passlib.mxnet.lowering.recurrent.weights import DirectionWeights, unpack
from passlib.mxnet.lowering.table import table

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
    biases = [
        op.emit(
            "Concat",
            _reordered(op, each.input_bias, cell),
            _reordered(op, each.state_bias, cell),
            axis=0,
        )
        for each in weights
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
    return op.emit("Slice", state, start, stop, vector(op, 0))
