"""Arithmetic with values adds ONNX nodes, in a lowering function only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest

from passlib.errors import GraphError, InternalError
from passlib.graph.node import Entry, Node
from passlib.lowering import Lowered, Lowerings, Operation, TypeSpec, Value, lower_graph

REAL, TRUTH = np.dtype(np.float32), np.dtype(bool)


@dataclass(frozen=True)
class Sum:
    """A graph of one operator, on the variables ``x`` and ``y``."""

    node = Node("Op", "op", {}, [Entry(Node("null", "x")), Entry(Node("null", "y"))], 1)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (Entry(self.node),)

    def nodes(self) -> list[Node]:
        return [*(entry.node for entry in self.node.inputs), self.node]


def lowered(function: Callable[[Operation], Value], dtype: np.dtype) -> Lowered:
    table = Lowerings("mxnet")
    table.register("Op")(function)
    return lower_graph(Sum(), table, dict.fromkeys("xy", TypeSpec(dtype, (2, 2))), {})


REALS: dict[str, tuple[Callable[[Any, Any], Any], str, list[str | float]]] = {
    "add": (lambda x, y: x + y, "Add", ["x", "y"]),
    "add number": (lambda x, _: x + 2, "Add", ["x", 2]),
    "number first": (lambda x, _: 2 - x, "Sub", [2, "x"]),
    "NumPy's number first": (lambda x, _: np.float64(2) * x, "Mul", [2, "x"]),
    "array first": (lambda x, _: np.full((), 2) / x, "Div", [2, "x"]),
    "subtract": (lambda x, y: x - y, "Sub", ["x", "y"]),
    "divide": (lambda x, y: x / y, "Div", ["x", "y"]),
    "power": (lambda x, y: x**y, "Pow", ["x", "y"]),
    "of a number": (lambda x, _: 2**x, "Pow", [2, "x"]),
    "product": (lambda x, y: x @ y, "MatMul", ["x", "y"]),
    "less": (lambda x, y: x < y, "Less", ["x", "y"]),
    "at most": (lambda x, _: x <= 2, "LessOrEqual", ["x", 2]),
    "greater": (lambda x, y: x > y, "Greater", ["x", "y"]),
    "at least": (lambda x, y: x >= y, "GreaterOrEqual", ["x", "y"]),
    "equal": (lambda x, _: x.equals(2), "Equal", ["x", 2]),
    "minus": (lambda x, _: -x, "Neg", ["x"]),
}
TRUTHS: dict[str, tuple[Callable[[Any, Any], Any], str, list[str | float]]] = {
    "and": (lambda x, y: x & y, "And", ["x", "y"]),
    "or": (lambda x, y: x | y, "Or", ["x", "y"]),
    "exclusive or": (lambda x, y: x ^ y, "Xor", ["x", "y"]),
    "not": (lambda x, _: ~x, "Not", ["x"]),
}


@pytest.mark.parametrize("name", [*REALS, *TRUTHS])
def test_one_node_for_each_operator(name: str) -> None:
    compute, op_type, inputs = (REALS | TRUTHS)[name]
    dtype = REAL if name in REALS else TRUTH
    graph = lowered(lambda op: compute(*op.inputs), dtype).model.graph
    (node,) = graph.node
    assert (node.op_type, node.name) == (op_type, f"op_{op_type.lower()}")
    numbers = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    assert [numbers.get(each, each) for each in node.input] == inputs
    assert {array.dtype for array in numbers.values()} <= {dtype}


def test_numbers_of_a_selection_are_constants_of_its_type() -> None:
    graph = lowered(lambda op: op.where(op.inputs[0] > 0, 1, op.inputs[1]), REAL).model.graph
    assert [node.op_type for node in graph.node] == ["Greater", "Where"]
    assert {each.data_type for each in graph.initializer} == {onnx.TensorProto.FLOAT}


def test_numbers_as_input_are_a_vector() -> None:
    graph = lowered(lambda op: op.emit("Unsqueeze", op.inputs[0], [0, 3]), REAL).model.graph
    assert [onnx.numpy_helper.to_array(each).tolist() for each in graph.initializer] == [[0, 3]]
    with pytest.raises(GraphError, match="exceed what 64 bits count"):
        lowered(lambda op: op.emit("Unsqueeze", op.inputs[0], [2**63]), REAL)


def test_arithmetic_needs_an_operation() -> None:
    kept: list[Value] = []
    lowered(lambda op: kept.append(op.inputs[0]) or -op.inputs[0], REAL)  # type: ignore[func-returns-value]
    with pytest.raises(InternalError, match="outside of a lowering function"):
        kept[0] + 1
    with pytest.raises(InternalError, match="outside of a lowering function"):
        -Value("x", REAL, ())
