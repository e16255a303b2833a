"""Random graphs with planted matches: each is found once, and replaced once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import passlib

UNARY = ("Relu", "Tanh", "Neg", "Abs")
PATTERNS = (
    "y = Add(MatMul(x, w:param), b:param[rank=1])",
    "y = Mul(x, Sigmoid(x))",
    "y = Div(Sub(x, m:param), s:param)",
)
NUMBERS = {"w": np.eye(3), "b": np.arange(3), "m": np.array(0.25), "s": np.array(2)}


@passlib.rewrite(PATTERNS, name="planted_patterns")
def replace_planted(m: passlib.Match) -> Any:
    """Makes an operator of passlib of each."""
    last = m.nodes[-1].op
    return m.op(f"planted::{last}", m.x)


@dataclass
class Planted:
    """Operations under construction, with the matches among them: pattern and nodes."""

    nodes: list[onnx.NodeProto]
    values: list[str]
    matches: list[tuple[str, tuple[str, ...]]]

    def add(self, op: str, *inputs: str, visible: bool = True) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name))
        if visible:
            self.values.append(name)
        return name


@st.composite
def graphs(draw: st.DrawFn) -> Planted:
    """Draw operations, some of which form matches, and near misses of each pattern."""
    made = Planted([], ["x"], [])
    for _ in range(draw(st.integers(1, 20))):
        x = draw(st.sampled_from(made.values[-6:]))
        kind = draw(st.integers(0, 5))
        missed = draw(st.booleans())
        if kind == 0:
            inner = made.add("MatMul", x, "w", visible=missed)
            inputs = draw(st.permutations([inner, "m" if missed else "b"]))
            outer = made.add("Add", *inputs)  # a miss adds a scalar
        elif kind == 1:
            inner = made.add("Sigmoid", x, visible=missed)
            other = "b" if missed else x
            outer = made.add("Mul", *draw(st.permutations([inner, other])))
        elif kind == 2:
            inner = made.add("Sub", *(("m", x) if missed else (x, "m")), visible=missed)
            outer = made.add("Div", inner, "s")
        else:
            made.add(draw(st.sampled_from(UNARY)), x)
            continue
        if not missed:
            made.matches.append((PATTERNS[kind], (inner, outer)))
    return made


def model_of(made: Planted) -> passlib.Model:
    """A model whose outputs are all values that nothing uses."""
    used = {name for node in made.nodes for name in node.input}
    heads = [value for value in made.values if value not in used and value != "x"]
    graph = helper.make_graph(
        made.nodes,
        "planted",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 3])],
        [helper.make_tensor_value_info(head, onnx.TensorProto.FLOAT, [3, 3]) for head in heads],
        [numpy_helper.from_array(np.float32(array), name) for name, array in NUMBERS.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("planted", 1)]
    return passlib.load(helper.make_model(graph, opset_imports=opsets, ir_version=9))


@settings(max_examples=60)
@given(made=graphs())
def test_each_planted_match_is_found_and_replaced_once(made: Planted) -> None:
    model = model_of(made)
    found = [(place.pattern, place.nodes) for place in passlib.find(model, PATTERNS)]
    assert sorted(found) == sorted(made.matches)
    after = model.optimize_for("planted_patterns")
    replaced = [
        node.name for node in after.symbol.nodes() if node.attrs.get("__domain__") == "planted"
    ]
    assert sorted(replaced) == sorted(nodes[-1] for _, nodes in made.matches)
    count = sum(node.op != "null" for node in after.symbol.nodes())
    assert count == len(made.nodes) - len(made.matches)
    assert passlib.find(after, PATTERNS) == []
    assert after.optimize_for("planted_patterns").symbol.graph.equals(after.symbol.graph)
