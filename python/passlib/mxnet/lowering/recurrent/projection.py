"""The LSTM whose state is projected to a smaller one: a Scan, since ONNX has no layer for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib.files.optional import require
from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.recurrent.packing import Packing
from passlib.mxnet.lowering.recurrent.weights import DirectionWeights


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
    types = [
        TypeSpec(dtype, (batch, packing.recurrent)),
        TypeSpec(dtype, (batch, packing.state)),
        TypeSpec(dtype, (time, batch, packing.recurrent)),
    ]
    sequences, hidden, cells = [], [], []
    for direction, each in enumerate(weights):
        index = op.constant(direction, "int64")
        first = [op.emit("Gather", state, index, axis=0) for state in states]
        products = op.emit("MatMul", sequence, op.emit("Transpose", each.input, perm=[1, 0]))
        bias = op.emit("Add", each.input_bias, each.state_bias)
        last_hidden, last_cell, outputs = op.emit(
            "Scan",
            *first,
            op.emit("Add", products, bias),
            outputs=3,
            types=types,
            body=_step(op, each),
            num_scan_inputs=1,
            scan_input_directions=[direction],
            scan_output_directions=[direction],
        )
        sequences.append(outputs)
        hidden.append(last_hidden)
        cells.append(last_cell)
    zero = vector(op, 0)
    finals = [
        op.emit("Concat", *(op.emit("Unsqueeze", value, zero) for value in values), axis=0)
        for values in (hidden, cells)
    ]
    return op.emit("Concat", *sequences, axis=2), finals


def _step(op: Operation, weights: DirectionWeights) -> Any:
    """Build one step: state (B, R), cell (B, H) and input products (B, 4 * H) to the next ones.

    The recurrent weights are taken from the enclosing graph.
    """
    helper: Any = require("onnx.helper", extra="onnx")
    assert weights.projection is not None
    by_state = op.emit("Transpose", weights.state, perm=[1, 0]).name
    project = op.emit("Transpose", weights.projection, perm=[1, 0]).name
    node = helper.make_node
    nodes = [
        node("MatMul", ["state", by_state], ["recurrent"]),
        node("Add", ["products", "recurrent"], ["gates"]),
        node("Split", ["gates"], ["i", "f", "g", "o"], axis=1, num_outputs=4),
        node("Sigmoid", ["i"], ["input_gate"]),
        node("Sigmoid", ["f"], ["forget_gate"]),
        node("Tanh", ["g"], ["candidate"]),
        node("Sigmoid", ["o"], ["output_gate"]),
        node("Mul", ["forget_gate", "cell"], ["kept"]),
        node("Mul", ["input_gate", "candidate"], ["added"]),
        node("Add", ["kept", "added"], ["next_cell"]),
        node("Tanh", ["next_cell"], ["bounded"]),
        node("Mul", ["output_gate", "bounded"], ["hidden"]),
        node("MatMul", ["hidden", project], ["next_state"]),
        node("Identity", ["next_state"], ["output"]),
    ]
    code = helper.np_dtype_to_tensor_dtype(op.dtype_of(weights.state))
    given, made = (
        [helper.make_tensor_value_info(name, code, None) for name in names]
        for names in (("state", "cell", "products"), ("next_state", "next_cell", "output"))
    )
    return helper.make_graph(nodes, "step", given, made)
