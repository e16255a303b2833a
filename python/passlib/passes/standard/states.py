"""dropZeroStates: omits zero initial states of recurrent layers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.dialects.onnx.attributes import ABSENT
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, given, integer, operator, text
from passlib.passes.standard.facts.shapes import Shapes

_MOVES = frozenset(
    ("Expand", "Slice", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Identity",
     "Gather", "Tile", "Split")
)  # fmt: skip
"""Operators whose results are elements of their first input."""


def is_zero(model: Model, value: EditableValue) -> bool:
    """Whether all elements of a value of floats are 0.0, not -0.0."""
    pending, seen = [value], {value}
    while pending:
        item = pending.pop()
        node = item.node
        name = operator(node)
        if node.is_variable:
            array = model.array(item)
            if array is None or np.any(array != 0) or np.any(np.signbit(array)):
                return False
            continue
        if name == "ConstantOfShape":
            if not _fills_zero(node.attrs.get("value")):
                return False
            continue
        if name not in _MOVES and name != "Concat":
            return False
        for source in node.inputs if name == "Concat" else node.inputs[:1]:
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return True


def _fills_zero(tensor: str | None) -> bool:
    if tensor is None:
        return True
    found: Any = json.loads(tensor)
    return all(item == 0 and str(item)[0] != "-" for item in found.get("data", [1]))


_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6), "com.microsoft.DynamicQuantizeLSTM": (5, 6)}
"""The inputs that are initial states."""


@graph_pass(
    name="dropZeroStates",
    dialects=["onnx"],
    exact=True,
    triggers=["RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"],
    joins=Joins(["clean", "simplify"], after="fuseSpaceToDepth"),
)
def drop_zero_states(graph: Graph) -> None:
    """Omit initial states of RNN, GRU and LSTM that are 0.0, which is the default."""
    model = Model(graph)
    found = [
        (node, place)
        for node in graph.sorted()
        for place in _STATES.get(operator(node), ())
        if given(node, place) is not None and is_zero(model, node.inputs[place])
    ]
    if not found:
        return
    shapes = Shapes(model)
    fitting = [(node, place) for node, place in found if _fits(node, place, shapes)]
    for node, place in fitting:
        state = node.inputs[place]
        values = list(node.inputs)
        rest = [number for number in range(place + 1, len(values)) if given(node, number)]
        if rest:
            values[place] = model.absent()
        else:
            del values[place:]
            while values and values[-1].node.name == ABSENT:
                values.pop()
        graph.set_inputs(node, values)
        model.remove_unused([state.node])


def _fits(node: EditableNode, place: int, shapes: Shapes) -> bool:
    """Whether the state has the required shape, so that no error is lost."""
    data, state = shapes.shape(node.inputs[0]), shapes.shape(node.inputs[place])
    if data is None or state is None or len(data) != 3:
        return False
    directions = 2 if text(node, "direction", "forward") == "bidirectional" else 1
    hidden = integer(node, "hidden_size", 0)
    if integer(node, "layout", 0):
        return state == (data[0], directions, hidden)
    return state == (directions, data[1], hidden)
