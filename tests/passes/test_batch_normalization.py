"""The standard pass foldBatchNormalization: what it folds in each dialect, and what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import passlib
import places
from dlprim_files import NETWORKS, load, network, operator, same_results, with_weights
from fold_cases import CASES, SQUARE, assert_close, conv, data, make_model, norm, outputs
from nnvm_files import text_of
from passlib.model import Model

MODELS = places.DATA / "mxnet" / "models"
FOLD = "foldBatchNormalization"

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    passlib.library.load_standard()


def norms(model: Model) -> int:
    """Count the nodes that normalize by statistics."""
    return sum("atch" in node.op and "orm" in node.op for node in model.symbol.nodes())


# MXNet.


@pytest.mark.parametrize(
    ("name", "count"),
    [("mobilenet0.25", 27), ("resnet_v1_small", 9), ("squeezenet1.1", 0), ("lstm_lm", 0)],
)
def test_mxnet_models(name: str, count: int) -> None:
    model = passlib.load(MODELS / name)
    folded = model.optimize_for(FOLD)
    assert (norms(model), norms(folded)) == (count, 0)
    assert len(folded.symbol.nodes()) == len(model.symbol.nodes()) - 4 * count
    assert len(folded.aux) == 0
    with np.load(MODELS / f"{name}-io.npz") as recorded:
        assert_close(folded(recorded["in/data"]), recorded["out/0"], 1e-5)


SHARED = {"shared weight": 2, "shared bias": 2, "weight is an output": 1}
"""What the example of the tutorial leaves; this pass gives the layers parameters of their own."""


@pytest.mark.parametrize("case", CASES)
def test_mxnet_cases(case: str) -> None:
    build, shape, folded, left = CASES[case]
    total, folded = folded + left, SHARED.get(case, folded)
    model = make_model(build(), shape)
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    result = model.optimize_for(FOLD, shape_dict={"data": shape})
    assert norms(model) == total
    assert norms(result) == total - folded
    for before, after in zip(outputs(model, x), outputs(result, x), strict=True):
        assert_close(after, before, 1e-5)
    assert result.symbol.list_outputs() == model.symbol.list_outputs()
    assert {*result.args, *result.aux} == {*result.symbol.list_inputs()} - {"data"}
    if not folded:
        assert result.symbol.tojson() == model.symbol.tojson()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_what_is_stored_is_the_exact_result_rounded(dtype: str) -> None:
    model = make_model(norm(conv(data()), eps=1e-3), SQUARE, dtype)
    folded = model.optimize_for(FOLD)
    old = {k: np.asarray(v, np.float64) for k, v in {**model.args, **model.aux}.items()}
    scale = old["norm_gamma"] / np.sqrt(old["norm_moving_var"] + 1e-3)
    expected = {
        "conv_weight": old["conv_weight"] * scale[:, None, None, None],
        "conv_bias": old["conv_bias"] * scale + old["norm_beta"] - old["norm_moving_mean"] * scale,
    }
    assert folded.args.keys() == expected.keys()
    for name, array in folded.args.items():
        assert array.dtype == dtype
        np.testing.assert_allclose(
            np.asarray(array, np.float64),
            expected[name],
            rtol=float(np.finfo(dtype).eps),
            atol=1e-7,
        )


@pytest.mark.parametrize("value", [6e-8, -6.1e-5, 1e-7, 1.0, 0.33325, 2047.5, 65504.0, -3e-6])
def test_halves_are_rounded_as_numpy_rounds(value: float) -> None:
    """A normalization by ones leaves each weight as it is."""
    model = make_model(norm(conv(data(), no_bias=True), eps=0.0), SQUARE, "float16")
    args = {name: np.ones_like(array) for name, array in model.args.items()}
    args["conv_weight"] = np.full(args["conv_weight"].shape, value, np.float16)
    args["norm_beta"] = np.linspace(-2, 2, 6).astype(np.float16)
    aux = {"norm_moving_mean": np.zeros(6, np.float16), "norm_moving_var": np.ones(6, np.float16)}
    folded = Model(model.symbol, args, aux).optimize_for(FOLD)
    np.testing.assert_array_equal(folded.args["conv_weight"], args["conv_weight"])
    np.testing.assert_array_equal(folded.args["conv_bias"], args["norm_beta"])


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        ("norm_moving_var", np.full(6, -1, np.float32), "the new weights would not be finite"),
        ("norm_gamma", np.full(6, np.nan, np.float32), "the new weights would not be finite"),
        ("norm_beta", np.ones(7, np.float32), "'norm_beta' is not one number a channel"),
        ("conv_weight", None, "no data were given for 'conv_weight'"),
        ("norm_moving_mean", None, "no data were given for 'norm_moving_mean'"),
    ],
)
def test_reasons(
    parameter: str, value: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model(norm(conv(data())), SQUARE)
    args, aux = dict(model.args), dict(model.aux)
    chosen = args if parameter in args else aux
    if value is None:
        del chosen[parameter]
    else:
        chosen[parameter] = value
    result = model.symbol.optimize_for(FOLD, args, aux, skip_infer=True, verbose=True)
    assert capsys.readouterr().out == f"left norm: {reason}\n{FOLD}: 0 folded, 1 left\n"
    assert result.tojson() == model.symbol.tojson()


def test_unknown_options_are_refused() -> None:
    model = make_model(norm(conv(data())), SQUARE)
    with pytest.raises(passlib.PassError, match="no option 'verbosity'; there is verbose"):
        model.optimize_for(FOLD, verbosity=1)
    with pytest.raises(passlib.PassError, match="verbose is True or False, not 'much'"):
        model.optimize_for(FOLD, verbose="much")


# ONNX.


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


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


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


Image = (2, 4, 5, 5)
Weights = dict[str, np.ndarray]
OnnxCase = tuple[list[onnx.NodeProto], Weights, tuple[int, ...], dict[str, Any], int]

CONV = {"w": values(6, 4, 3, 3), "b": values(6)}
SQUARES = {"w": values(5, 6), "b": values(6)}


def onnx_cases() -> dict[str, OnnxCase]:
    """Nodes, weights, shape of x, other arguments of `onnx_model`, how many are folded."""
    relu = helper.make_node("Relu", ["c"], ["r"])
    return {
        "bias": ([onnx_conv(), onnx_norm()], CONV, Image, {}, 1),
        "no bias": ([onnx_conv(bias=False), onnx_norm()], {"w": CONV["w"]}, Image, {}, 1),
        "bias left out": (
            [helper.make_node("Conv", ["x", "w", ""], ["c"]), onnx_norm()],
            {"w": CONV["w"]},
            Image,
            {},
            1,
        ),
        "groups": (
            [onnx_conv(group=2), onnx_norm()],
            {"w": values(6, 2, 3, 3), "b": CONV["b"]},
            Image,
            {},
            1,
        ),
        "epsilon": ([onnx_conv(), onnx_norm(epsilon=0.25)], CONV, Image, {}, 1),
        "transposed": (
            [transposed(), onnx_norm()],
            {"w": values(4, 6, 2, 2), "b": CONV["b"]},
            Image,
            {},
            1,
        ),
        "transposed, groups": (
            [transposed(group=2), onnx_norm()],
            {"w": values(4, 3, 2, 2), "b": CONV["b"]},
            Image,
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
        "relu between": ([onnx_conv(), relu, onnx_norm("r")], CONV, Image, {}, 0),
        "two users": (
            [onnx_conv(), onnx_norm(), helper.make_node("Relu", ["c"], ["z"])],
            CONV,
            Image,
            {"outputs": ("y", "z")},
            0,
        ),
        "layer is an output": ([onnx_conv(), onnx_norm()], CONV, Image, {"outputs": ("y", "c")}, 0),
        "an old operator set": ([onnx_conv(), onnx_norm()], CONV, Image, {"opset": 9}, 1),
        "shared weight": (
            [onnx_conv(), onnx_norm(), helper.make_node("Conv", ["x", "w"], ["z"])],
            CONV,
            Image,
            {"outputs": ("y", "z")},
            1,
        ),
        "weight is the default of an input": (
            [onnx_conv(), onnx_norm()],
            CONV,
            Image,
            {"defaults": ("w",)},
            0,
        ),
        "mean is the default of an input": (
            [onnx_conv(), onnx_norm()],
            CONV,
            Image,
            {"defaults": ("n_mean",)},
            0,
        ),
        "computed weight": (
            [helper.make_node("Tanh", ["v"], ["w"]), onnx_conv(), onnx_norm()],
            {"v": CONV["w"], "b": CONV["b"]},
            Image,
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
    onnx.save(onnx_model([onnx_conv(), node], dict(CONV), Image, opset), path)
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


# DLPrimitives.


LEFT = {"bn_predict.json": 3, "bn_train.json": 2, "unet_like.json": 1}
"""Behind inputs and activations."""


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_dlprim_files(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path)
    if norms(model) == 0:
        model.optimize_for(FOLD, skip_infer=True).save(tmp_path / path.name)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
        return
    model = with_weights(model)
    folded = model.optimize_for(FOLD, skip_infer=True)
    assert norms(folded) == LEFT.get(path.name, 0)
    if path.stat().st_size < 20_000:  # larger ones take long
        folded.save(tmp_path / "out.json")
        same_results(model, passlib.load(tmp_path / "out.json"))


def convolution(**more: Any) -> dict[str, Any]:
    return operator("c", "Convolution2D", **{"channels_out": 6, "kernel": 3, "pad": 1, **more})


BN = operator("n", "BatchNorm", "c", eps=0.01)
DLPRIM: dict[str, tuple[list[dict[str, Any]], tuple[int, ...], int]] = {
    "convolution": ([convolution(), BN], (2, 3, 4, 4), 1),
    "no bias": ([convolution(bias=False), BN], (2, 3, 4, 4), 1),
    "groups": ([convolution(groups=2), BN], (2, 4, 4, 4), 1),
    "in place": ([convolution(), operator("n", "BatchNorm", "c", "c")], (2, 3, 4, 4), 1),
    "without scale and shift": (
        [convolution(), operator("n", "BatchNorm", "c", affine=False)],
        (2, 3, 4, 4),
        1,
    ),
    "transposed": (
        [operator("c", "TransposedConvolution2D", channels_out=6, kernel=2, groups=2), BN],
        (2, 4, 4, 4),
        1,
    ),
    "dense": ([operator("c", "InnerProduct", outputs=5), BN], (2, 3), 1),
    "dense, no bias": ([operator("c", "InnerProduct", outputs=5, bias=False), BN], (2, 3), 1),
    "activation": ([convolution(activation="relu"), BN], (2, 3, 4, 4), 0),
    "identity": ([convolution(activation="identity"), BN], (2, 3, 4, 4), 1),
    "two users": (
        [convolution(), BN, operator("s", "Elementwise", ["c", "n"])],
        (2, 3, 4, 4),
        0,
    ),
    "two norms": ([convolution(), BN, operator("m", "BatchNorm", "n")], (2, 3, 4, 4), 2),
}


@pytest.mark.parametrize("case", DLPRIM)
def test_dlprim_cases(case: str, tmp_path: Path) -> None:
    operators, shape, folded = DLPRIM[case]
    model = with_weights(load(tmp_path, network(*operators, shape=shape)))
    result = model.optimize_for(FOLD)
    assert norms(model) - norms(result) == folded
    same_results(model, result)
    result.save(tmp_path / "out.json")
    same_results(model, passlib.load(tmp_path / "out.json"))


# NNVM.


def nnvm_graph(layer: str, attrs: dict[str, str], **norm_attrs: str) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": name, "inputs": []} for name in ("data", "w", "b")
    ]
    nodes.append(
        {"op": layer, "name": "c", "attrs": attrs, "inputs": [[i, 0, 0] for i in range(3)]}
    )
    nodes += [
        {"op": "null", "name": name, "inputs": []} for name in ("gamma", "beta", "mean", "var")
    ]
    nodes.append(
        {
            "op": "batch_norm",
            "name": "n",
            "attrs": norm_attrs,
            "inputs": [[i, 0, int(i > 5)] for i in range(3, 8)],
        }
    )
    nodes.append({"op": "relu", "name": "r", "inputs": [[8, 0, 0]]})
    return {"nodes": nodes, "arg_nodes": [0, 1, 2, 4, 5, 6, 7], "heads": [[9, 0, 0]]}


NNVM: list[tuple[str, dict[str, str], dict[str, str], tuple[int, ...], tuple[int, ...], int]] = [
    ("conv2d", {"channels": "6", "kernel_size": "[3, 3]"}, {}, (6, 4, 3, 3), Image, 1),
    (
        "conv2d",
        {"channels": "6", "kernel_size": "[3, 3]"},
        {"scale": "False", "epsilon": "0.1"},
        (6, 4, 3, 3),
        Image,
        1,
    ),
    (
        "conv2d",
        {"channels": "6", "kernel_size": "[3, 3]"},
        {"center": "False"},
        (6, 4, 3, 3),
        Image,
        1,
    ),
    (
        "conv2d",
        {"channels": "6", "kernel_size": "[3, 3]", "kernel_layout": "HWIO"},
        {},
        (3, 3, 4, 6),
        Image,
        0,
    ),
    # Shapes are not inferred for NNVM, so nobody knows how many axes the result has.
    ("dense", {"units": "6"}, {}, (6, 5), (3, 5), 0),
    ("dense", {"units": "6"}, {"axis": "-1"}, (6, 5), (3, 5), 1),
]


@pytest.mark.parametrize(("layer", "attrs", "more", "weight", "shape", "folded"), NNVM)
def test_nnvm_cases(
    layer: str,
    attrs: dict[str, str],
    more: dict[str, str],
    weight: tuple[int, ...],
    shape: tuple[int, ...],
    folded: int,
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(text_of(nnvm_graph(layer, attrs, **more)))
    random = np.random.default_rng(2)
    arrays = {
        name: random.uniform(0.5, 2, 6).astype(np.float32)
        for name in ("b", "gamma", "beta", "mean", "var")
    }
    arrays["w"] = values(*weight)
    read = passlib.load(path, dialect="nnvm")
    states = set(read.symbol.list_auxiliary_states())
    model = Model(
        read.symbol,
        {name: array for name, array in arrays.items() if name not in states},
        {name: array for name, array in arrays.items() if name in states},
        "nnvm",
        template=read._template,
    )
    result = model.optimize_for(FOLD, shape_dict={"data": shape})
    assert norms(model) - norms(result) == folded
    x = values(*shape)
    np.testing.assert_allclose(np.asarray(result(x)), np.asarray(model(x)), rtol=1e-5, atol=1e-5)
