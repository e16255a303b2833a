"""Random ONNX models with duplicates and dead nodes: the standard passes remove exactly those."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import passlib

MERGE = "mergeEqualNodes"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")

UNARY = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Identity")
BINARY = ("Add", "Mul", "Sub", "Max")


@st.composite
def expressions(draw: st.DrawFn) -> tuple[list[tuple[str, tuple[int, ...]]], list[int]]:
    """Draw operators with the numbers of their inputs, 0 being the graph's input, and outputs."""
    nodes: list[tuple[str, tuple[int, ...]]] = []
    for position in range(draw(st.integers(1, 25))):
        older = st.integers(max(0, position - 6), position)
        if draw(st.booleans()):
            nodes.append((draw(st.sampled_from(UNARY)), (draw(older),)))
        else:
            nodes.append((draw(st.sampled_from(BINARY)), (draw(older), draw(older))))
        if draw(st.booleans()):
            nodes.append(nodes[-1])  # a duplicate at once
    heads = draw(st.lists(st.integers(1, len(nodes)), min_size=1, max_size=3, unique=True))
    return nodes, heads


def distinct(nodes: list[tuple[str, tuple[int, ...]]], heads: list[int]) -> int:
    """Count the nodes that must remain: distinct needed values, and every output."""
    number: dict[Any, int] = {}
    value = [0]
    for op, inputs in nodes:
        key = op, tuple(value[i] for i in inputs)
        value.append(number.setdefault(key, len(number) + 1))
    needed: set[int] = set()
    pending = list(heads)
    while pending:
        position = pending.pop()
        if position and position not in needed:
            needed.add(position)
            pending += nodes[position - 1][1]
    classes = {value[position] for position in needed}
    return len(classes) + len(heads) - len({value[position] for position in heads})


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
@given(graph=expressions(), merge_first=st.booleans())
def test_planted_duplicates_and_dead_nodes(
    graph: tuple[list[tuple[str, tuple[int, ...]]], list[int]],
    merge_first: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    nodes, heads = graph
    protos = [
        helper.make_node(op, [f"v{i}" for i in inputs], [f"v{position}"], name=f"n{position}")
        for position, (op, inputs) in enumerate(nodes, 1)
    ]
    made = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["v0"]), *protos],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(f"v{i}", onnx.TensorProto.FLOAT, [3]) for i in heads],
        [numpy_helper.from_array(np.float32([0.5, -0.25, 1.5]), name) for name in ("w", "unused")],
    )
    imports = [helper.make_opsetid("", 17)]
    folder = tmp_path_factory.mktemp("planted")
    onnx.save(helper.make_model(made, opset_imports=imports, ir_version=8), folder / "m.onnx")
    model = passlib.load(folder / "m.onnx")
    names = (MERGE, "removeDeadNodes") if merge_first else ("removeDeadNodes", MERGE)
    result = model
    for name in names:
        result = result.optimize_for(name, skip_infer=True)
    result.save(folder / "out.onnx")
    saved = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(saved, full_check=True)
    reached = any(node.output[0] == "v0" for node in saved.graph.node)
    assert len(saved.graph.node) - reached == distinct(nodes, heads)
    assert [tensor.name for tensor in saved.graph.initializer] == ["w"] * reached
    feeds = {"x": np.float32([1, -2, 0.5])}
    expected, found = model.run(feeds), passlib.load(folder / "out.onnx").run(feeds)
    assert list(expected) == list(found)
    for name, array in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(array), rtol=1e-5, atol=1e-6)
