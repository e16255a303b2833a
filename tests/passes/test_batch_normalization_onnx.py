"""The standard pass foldBatchNormalization on ONNX models: what it folds, and what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import passlib
import places
from fold_cases import SQUARE, assert_close, values
from node_counts import norms
from passlib.model import Model

MODELS = places.DATA / "mxnet" / "models"
FOLD = "foldBatchNormalization"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")


def onnx_norm(source: str = "c", name: str = "n", **attributes: Any) -> onnx.NodeProto:
    parameters = [f"{name}_{part}" for part in ("scale", "bias", "mean", "var")]
    return helper.make_node(
        "BatchNormalization", [source, *parameters], ["y"], name=name, **attributes
    )


def onnx_model(
    nodes: list[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    x: tuple[int, ...],
    opset: int = 17,
    outputs: tuple[str, ...] = ("y",),
    defaults: tuple[str, ...] = (),
    channels: int = 6,
) -> onnx.ModelProto:
    random = np.random.default_rng(1)
    for part in ("scale", "bias", "mean", "var"):
        array = random.uniform(0.5, 2, channels).astype(np.float32)
        weights.setdefault(f"n_{part}", array)
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x)]
    inputs += [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, weights[name].shape)
        for name in defaults
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None] * len(x))
            for name in outputs
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def onnx_conv(**attributes: Any) -> onnx.NodeProto:
    bias = attributes.pop("bias", True)
    names = ["x", "w", "b"] if bias else ["x", "w"]
    return helper.make_node("Conv", names, ["c"], name="conv", **attributes)


def gemm(bias: str | None = "b", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(
        "Gemm", ["x", "w", *([bias] if bias is not None else [])], ["c"], name="gemm", **attributes
    )


def transposed(**attributes: Any) -> onnx.NodeProto:
    return helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], name="t", **attributes)


Weights = dict[str, np.ndarray]
OnnxCase = tuple[list[onnx.NodeProto], Weights, tuple[int, ...], dict[str, Any], int]

CONV = {"w": values(6, 4, 3, 3), "b": values(6)}
SQUARES = {"w": values(5, 6), "b": values(6)}


def onnx_cases() -> dict[str, OnnxCase]:
    """Return nodes, weights, shape of x, other arguments of `onnx_model`, number folded."""
    relu = helper.make_node("Relu", ["c"], ["r"])
    return {
        "bias": ([onnx_conv(), onnx_norm()], CONV, SQUARE, {}, 1),
        "no bias": ([onnx_conv(bias=False), onnx_norm()], {"w": CONV["w"]}, SQUARE, {}, 1),
        "bias left out": (
            [helper.make_node("Conv", ["x", "w", ""], ["c"]), onnx_norm()],
            {"w": CONV["w"]},
            SQUARE,
            {},
            1,
        ),
        "groups": (
            [onnx_conv(group=2), onnx_norm()],
            {"w": values(6, 2, 3, 3), "b": CONV["b"]},
            SQUARE,
            {},
            1,
        ),
        "epsilon": ([onnx_conv(), onnx_norm(epsilon=0.25)], CONV, SQUARE, {}, 1),
        "transposed": (
            [transposed(), onnx_norm()],
            {"w": values(4, 6, 2, 2), "b": CONV["b"]},
            SQUARE,
            {},
            1,
        ),
        "transposed, groups": (
            [transposed(group=2), onnx_norm()],
            {"w": values(4, 3, 2, 2), "b": CONV["b"]},
            SQUARE,
            {},
            1,
        ),
        "Gemm": ([gemm(), onnx_norm()], SQUARES, (3, 5), {}, 1),
        "Gemm, transB": (
            [gemm(transB=1), onnx_norm()],
            {"w": values(6, 5), "b": values(6)},
            (3, 5),
            {},
            1,
        ),
        "Gemm, alpha and beta": ([gemm(alpha=0.5, beta=3.0), onnx_norm()], SQUARES, (3, 5), {}, 1),
        "Gemm, one number as bias": (
            [gemm(beta=2.0), onnx_norm()],
            {"w": values(5, 6), "b": values(1)},
            (3, 5),
            {},
            1,
        ),
        "Gemm, a row as bias": (
            [gemm(transA=1), onnx_norm()],
            {"w": values(5, 6), "b": values(1, 6)},
            (5, 3),
            {},
            1,
        ),
        "Gemm, no bias": ([gemm(None, beta=9.0), onnx_norm()], {"w": values(5, 6)}, (3, 5), {}, 1),
        "Gemm, a bias a row": (
            [gemm(), onnx_norm()],
            {"w": values(5, 6), "b": values(3, 1)},
            (3, 5),
            {},
            0,
        ),
        "relu between": ([onnx_conv(), relu, onnx_norm("r")], CONV, SQUARE, {}, 0),
        "two users": (
            [onnx_conv(), onnx_norm(), helper.make_node("Relu", ["c"], ["z"])],
            CONV,
            SQUARE,
            {"outputs": ("y", "z")},
            0,
        ),
        "layer is an output": (
            [onnx_conv(), onnx_norm()],
            CONV,
            SQUARE,
            {"outputs": ("y", "c")},
            0,
        ),
        "an old operator set": ([onnx_conv(), onnx_norm()], CONV, SQUARE, {"opset": 9}, 1),
        "shared weight": (
            [onnx_conv(), onnx_norm(), helper.make_node("Conv", ["x", "w"], ["z"])],
            CONV,
            SQUARE,
            {"outputs": ("y", "z")},
            1,
        ),
        "weight is the default of an input": (
            [onnx_conv(), onnx_norm()],
            CONV,
            SQUARE,
            {"defaults": ("w",)},
            0,
        ),
        "mean is the default of an input": (
            [onnx_conv(), onnx_norm()],
            CONV,
            SQUARE,
            {"defaults": ("n_mean",)},
            0,
        ),
        "computed weight": (
            [helper.make_node("Tanh", ["v"], ["w"]), onnx_conv(), onnx_norm()],
            {"v": CONV["w"], "b": CONV["b"]},
            SQUARE,
            {},
            0,
        ),
    }


def run_onnx(model: Model, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(output) for output in model.run(feeds).values()]


@pytest.mark.parametrize("case", onnx_cases())
def test_onnx_cases(case: str, tmp_path: Path) -> None:
    nodes, weights, shape, more, folded = onnx_cases()[case]
    proto = onnx_model(nodes, dict(weights), shape, **more)
    onnx.checker.check_model(proto, full_check=True)
    path, saved = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(proto, path)
    model = passlib.load(path)
    model.optimize_for(FOLD).save(saved)
    result = passlib.load(saved)
    onnx.checker.check_model(onnx.load(saved), full_check=True)
    assert norms(model) - norms(result) == folded
    feeds = {"x": values(*shape)}
    for before, after in zip(run_onnx(model, feeds), run_onnx(result, feeds), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)
    assert result.outputs == model.outputs
    assert result.inputs == model.inputs
    if not folded:
        assert onnx.load(saved) == proto
    used = {name for node in onnx.load(saved).graph.node for name in node.input}
    assert {tensor.name for tensor in onnx.load(saved).graph.initializer} <= used


@pytest.mark.parametrize(
    ("opset", "attributes", "more", "folded"),
    [
        (17, {"training_mode": 1}, ["m", "v"], 0),
        (17, {"training_mode": 0}, [], 1),
        (13, {}, ["m", "v", "sm", "sv"], 0),
        (7, {"spatial": 0}, [], 0),
        (8, {"spatial": 1}, [], 1),
        (6, {}, [], 0),
        (6, {"is_test": 1}, [], 1),
        (1, {"is_test": 0, "consumed_inputs": [0, 0, 0, 1, 1]}, [], 0),
    ],
)
def test_onnx_normalization_of_training(
    opset: int, attributes: dict[str, Any], more: list[str], folded: int, tmp_path: Path
) -> None:
    node = onnx_norm(**attributes)
    node.output.extend(more)
    path = tmp_path / "m.onnx"
    onnx.save(onnx_model([onnx_conv(), node], dict(CONV), SQUARE, opset), path)
    model = passlib.load(path)
    assert norms(model) - norms(model.optimize_for(FOLD, skip_infer=True)) == folded


@pytest.mark.parametrize("name", ["mobilenet0.25", "resnet_v1_small"])
def test_own_onnx_files(name: str, tmp_path: Path) -> None:
    source = passlib.load(MODELS / name)
    with np.load(MODELS / f"{name}-io.npz") as recorded:
        x, expected = recorded["in/data"], recorded["out/0"]
    source.to_onnx(tmp_path / "m.onnx", shapes={"data": x.shape})
    model = passlib.load(tmp_path / "m.onnx")
    folded = model.optimize_for(FOLD)
    assert norms(model) > 0
    assert norms(folded) == 0
    assert_close(folded(x), expected, 1e-5)
