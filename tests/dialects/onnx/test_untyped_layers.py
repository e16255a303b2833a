"""Layers in files that state no types: what folding makes of them is accepted without inference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import passlib
from passlib.dialects.onnx.writing import saving
from passlib.errors import GraphError

CHANNELS = 4
WEIGHTS = {
    "Conv": (CHANNELS, CHANNELS, 1, 1),
    "ConvTranspose": (CHANNELS, CHANNELS, 1, 1),
    "Gemm": (CHANNELS, CHANNELS),
}
ONES = np.ones(CHANNELS, np.float32)


def write(path: Path, op: str, norms: int, *, behind: str = "Relu", output: str = "r") -> None:
    """Write a layer, normalizations behind it, and users of the last one, all without types."""
    weight = np.random.default_rng(1).standard_normal(WEIGHTS[op]).astype(np.float32)
    arrays = {"w": weight}
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node(op, ["n", "w"], ["c"], "c")]
    last = "c"
    for number in range(norms):
        names = [f"{kind}{number}" for kind in ("scale", "shift", "mean", "var")]
        arrays |= dict.fromkeys(names, ONES * (number + 0.5))
        nodes.append(helper.make_node("BatchNormalization", [last, *names], [f"b{number}"]))
        last = f"b{number}"
    nodes.append(helper.make_node(behind, [last], ["r"], "r"))
    shape = (2, CHANNELS) if op == "Gemm" else (2, CHANNELS, 3, 3)
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def refuse(*_: object) -> None:
    raise AssertionError("the whole model was checked")


@pytest.fixture(autouse=True)
def standard() -> None:
    passlib.library.load_standard()


@pytest.mark.parametrize("op", WEIGHTS)
@pytest.mark.parametrize("norms", [1, 3])
def test_folding_needs_no_check_of_the_whole(
    op: str, norms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    write(source, op, norms)
    model = passlib.load(source)
    made = model.optimize_for("foldBatchNormalization")
    monkeypatch.setattr(saving, "check_accepted", refuse)
    made.save(target)
    monkeypatch.undo()
    onnx.checker.check_model(target, full_check=True)
    assert [node.op_type for node in onnx.load(target).graph.node] == ["Neg", op, "Relu"]
    x = np.linspace(-1, 1, 2 * CHANNELS * 9, dtype=np.float32).reshape(2, CHANNELS, 3, 3)
    x = x[..., 0, 0] if op == "Gemm" else x
    np.testing.assert_allclose(
        passlib.load(target).run({"x": x})["r"].asnumpy(),
        model.run({"x": x})["r"].asnumpy(),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("output", ["b0", "r"])
def test_outputs_keep_their_types(output: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    write(source, "Conv", 1, output=output)
    passlib.load(source).optimize_for("foldBatchNormalization").save(target)
    onnx.checker.check_model(target, full_check=True)
    before, after = onnx.load(source).graph.output, onnx.load(target).graph.output
    assert [value.SerializeToString() for value in before] == [
        value.SerializeToString() for value in after
    ]


def add_bias(array: np.ndarray) -> passlib.GraphPass:
    @passlib.graph_pass
    def add_bias_to_layers(graph: passlib.Graph) -> None:
        """Give each layer without a bias one."""
        for node in list(graph.nodes):
            if node.op in WEIGHTS:
                bias = graph.add_parameter(node.name + "_bias", array)
                graph.connect(bias.output(), node, 2)

    return add_bias_to_layers


@pytest.mark.parametrize("op", WEIGHTS)
def test_a_bias_of_another_type_is_refused(op: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    write(source, op, 1)
    model = passlib.load(source)
    model.optimize_for(add_bias(ONES)).save(target)
    onnx.checker.check_model(target, full_check=True)
    target.unlink()
    with pytest.raises(GraphError, match="tensor"):
        model.optimize_for(add_bias(ONES.astype(np.float64))).save(target)
    assert not target.exists()


def test_a_shape_that_is_computed_from_a_normalized_value(tmp_path: Path) -> None:
    """An operator that reads a shape from an input is inferred anew when its elements change."""
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    write(source, "Conv", 2, behind="Shape", output="b1")
    model = passlib.load(source)
    model.optimize_for("foldBatchNormalization").save(target)
    onnx.checker.check_model(target, full_check=True)
