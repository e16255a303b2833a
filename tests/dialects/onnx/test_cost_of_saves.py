"""A save checks the kinds of nodes that passes changed, not the whole model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib
from steps import counted_steps


def normalized(layers: int, shape: list[int] | None, last: str) -> onnx.ModelProto:
    """Convolutions with a normalization each; the output states a shape or none."""
    names = "smbv"
    weights = [numpy_helper.from_array(np.ones(4, np.float32), name) for name in names]
    nodes, x = [], "x"
    for number in range(layers):
        kernel = np.full((4, 4, 1, 1), 1 + number, np.float32)
        weights.append(numpy_helper.from_array(kernel, f"w{number}"))
        nodes.append(helper.make_node("Conv", [x, f"w{number}"], [f"c{number}"]))
        x = f"n{number}"
        nodes.append(helper.make_node("BatchNormalization", [f"c{number}", *names], [x]))
    if last:
        nodes.append(helper.make_node(last, [x], ["y"]))
        x = "y"
    ends = (("x", [1, 4, 2, 2]), (x, shape))
    values = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in ends)
    graph = helper.make_graph(nodes, "g", *values, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def saving(message: onnx.ModelProto, path: Path) -> int:
    types = onnx.shape_inference.infer_shapes(message).graph.value_info
    message.graph.value_info.extend(types)
    model = passlib.load(message).optimize_for("foldBatchNormalization")
    assert [node.op for node in model.symbol.nodes()].count("BatchNormalization") == 0
    _, steps = counted_steps(lambda: model.save(path))
    return steps


@pytest.mark.parametrize("last", ["Relu", ""], ids=["another operator", "what was folded"])
def test_an_output_without_a_shape_costs_no_more(last: str, tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    saving(normalized(2, [1, 4, 2, 2], last), path)  # imports
    stated = saving(normalized(100, [1, 4, 2, 2], last), path)
    onnx.checker.check_model(str(path), full_check=True)
    unstated = saving(normalized(100, None, last), path)
    assert unstated < 1.2 * stated
