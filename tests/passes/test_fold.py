"""The example that folds BatchNorm: what it folds, what it leaves, and equal results."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import passlib
import places
from example_build import build_example
from fold_cases import (
    CASES,
    SQUARE,
    assert_close,
    conv,
    data,
    dense,
    make_model,
    norm,
    outputs,
)
from node_counts import norms
from passlib import sym
from passlib.model import Model
from passlib.symbol import Symbol

MODELS = places.DATA / "mxnet" / "models"

pytestmark = pytest.mark.usefixtures("libraries", "handover")


@pytest.fixture(scope="module")
def libraries() -> None:
    for folder, source in (("lib_pass", "pass_lib.cc"), ("lib_fold", "fold_batch_norm.cc")):
        passlib.library.load(build_example(folder, source), verbose=False, replace=True)


PASSES = {
    "nothing": (),
    "fold": ("foldBatchNorm",),
    "no-ops": ("dropNoOps",),
    "relu": ("fuseBatchNormRelu",),
    "all": ("dropNoOps", "foldBatchNorm", "fuseBatchNormRelu"),
}


@pytest.mark.parametrize("chain", PASSES)
@pytest.mark.parametrize("name", ["mobilenet0.25", "resnet_v1_small", "squeezenet1.1", "lstm_lm"])
def test_models_agree_with_mxnet(name: str, chain: str) -> None:
    model = passlib.load(MODELS / name)
    for name_of_pass in PASSES[chain]:
        model = model.optimize_for(name_of_pass)
    with np.load(MODELS / f"{name}-io.npz") as recorded:
        assert_close(model(recorded["in/data"]), recorded["out/0"], 1e-4)
    if "foldBatchNorm" in PASSES[chain]:
        assert norms(model.symbol) == 0


@pytest.mark.parametrize(("name", "layers"), [("mobilenet0.25", 27), ("resnet_v1_small", 9)])
def test_four_parameters_go_and_one_comes(name: str, layers: int) -> None:
    model = passlib.load(MODELS / name)
    assert norms(model.symbol) == layers
    folded = model.optimize_for("foldBatchNorm")
    # The convolutions of these models have no bias.
    assert len(folded.args) == len(model.args) - 2 * layers + layers
    assert len(folded.aux) == 0
    assert len(folded.symbol.nodes()) == len(model.symbol.nodes()) - 5 * layers + layers
    assert set(folded.symbol.list_arguments()) == {*folded.args, "data"}


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    build, shape, folded, left = CASES[case]
    model = make_model(build(), shape)
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    result = model.optimize_for("foldBatchNorm", shape_dict={"data": shape})
    assert norms(model.symbol) == folded + left
    assert norms(result.symbol) == left
    for before, after in zip(outputs(model, x), outputs(result, x), strict=True):
        assert_close(after, before, 1e-5)
    assert result.symbol.list_outputs() == model.symbol.list_outputs()
    used = {*result.symbol.list_inputs()} - {"data"}
    assert {*result.args, *result.aux} == used
    if not folded:
        assert result.symbol.tojson() == model.symbol.tojson()


@pytest.mark.parametrize(("axis", "left"), [(2, 1), (-1, 0)])
def test_axis_of_dense_without_shapes(axis: int, left: int) -> None:
    """Without shapes the pass cannot tell that axis 2 is the last; axis -1 always is."""
    model = make_model(norm(dense(flatten=False), axis=axis), (2, 3, 4))
    assert norms(model.optimize_for("foldBatchNorm", skip_infer=True).symbol) == left


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("bias", [True, False])
def test_precisions(dtype: str, bias: bool) -> None:
    """Stored weights are the exact result, rounded to the precision of the layer."""
    model = make_model(norm(conv(data(), no_bias=not bias), eps=1e-3), SQUARE, dtype)
    folded = model.optimize_for("foldBatchNorm")
    old = {k: np.asarray(v, np.float64) for k, v in {**model.args, **model.aux}.items()}
    scale = old["norm_gamma"] / np.sqrt(old["norm_moving_var"] + 1e-3)
    shift = old["norm_beta"] - old["norm_moving_mean"] * scale
    expected = {
        "conv_weight": old["conv_weight"] * scale[:, None, None, None],
        "conv_bias": scale * old.get("conv_bias", 0) + shift,
    }
    assert folded.args.keys() == expected.keys()
    for name, array in folded.args.items():
        assert array.dtype == dtype
        np.testing.assert_array_max_ulp(np.asarray(array), expected[name].astype(dtype), maxulp=1)


def test_half_precision_is_rounded_once() -> None:
    """Scale each finite number of half precision by its own factor."""
    random = np.random.default_rng(5)
    weight = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    weight = weight[np.isfinite(weight)]
    gamma = np.where(np.arange(weight.size) % 2, random.uniform(-1, 1, weight.size), 1)
    symbol = norm(
        sym.FullyConnected(data(), num_hidden=weight.size, no_bias=True, name="fc"), eps=0
    )
    zeros, ones = np.zeros(weight.size), np.ones(weight.size)
    args = {"fc_weight": weight[:, None], "norm_gamma": gamma, "norm_beta": zeros}
    aux = {"norm_moving_mean": zeros, "norm_moving_var": ones}
    folded = Model(symbol, args, aux).optimize_for("foldBatchNorm", skip_infer=True)
    assert norms(folded.symbol) == 0
    expected = (weight.astype(np.float64) * gamma).astype(np.float16)
    np.testing.assert_array_equal(
        np.asarray(folded.args["fc_weight"])[:, 0].view(np.uint16), expected.view(np.uint16)
    )


def small() -> tuple[Symbol, dict[str, np.ndarray], dict[str, np.ndarray]]:
    model = make_model(norm(conv(data(), no_bias=True)), SQUARE)
    args, aux = ({k: np.array(v) for k, v in d.items()} for d in (model.args, model.aux))
    return model.symbol, args, aux


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda args, aux: args.pop("norm_beta"), "no data were given for 'norm_beta'"),
        (lambda args, aux: aux.pop("norm_moving_var"), "no data were given for 'norm_moving_var'"),
        (lambda args, aux: args.clear(), "no data were given for 'conv_weight'"),
        (lambda args, aux: aux.clear(), "no data were given for 'norm_moving_mean'"),
        (
            lambda args, aux: aux["norm_moving_var"].fill(-1),
            "the new weights would not be finite",
        ),
        (
            lambda args, aux: args["norm_gamma"].fill(3e38),
            "the new weights would not be finite",
        ),
        (
            lambda args, aux: args.update(conv_weight=args["conv_weight"].astype(np.int32)),
            "'conv_weight' is no dense array of real numbers on the CPU",
        ),
    ],
)
def test_left_for_a_reason(
    change: Callable[[dict[str, np.ndarray], dict[str, np.ndarray]], object],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    symbol, args, aux = small()
    change(args, aux)
    names = [*args], [*aux]
    result = symbol.optimize_for("foldBatchNorm", args, aux, skip_infer=True, verbose=1)
    assert capsys.readouterr().out == f"left norm: {reason}\nfoldBatchNorm: 0 folded, 1 left\n"
    assert result.tojson() == symbol.tojson()
    assert ([*args], [*aux]) == names


def test_without_any_data() -> None:
    symbol, args, aux = small()
    assert norms(symbol.optimize_for("foldBatchNorm")) == 1
    assert norms(symbol.optimize_for("foldBatchNorm", args, skip_infer=True)) == 1
    assert norms(symbol.optimize_for("foldBatchNorm", None, aux, skip_infer=True)) == 1


def test_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    symbol, args, aux = small()
    symbol.optimize_for("foldBatchNorm", args, aux, verbose=True)
    expected = "folded norm into conv\nfoldBatchNorm: 1 folded, 0 left\n"
    assert capsys.readouterr().out == expected


def test_arrays_of_the_caller_stay() -> None:
    symbol, args, aux = small()
    weight = args["conv_weight"]
    before = weight.copy()
    symbol.optimize_for("foldBatchNorm", args, aux)
    np.testing.assert_array_equal(weight, before)
    assert args["conv_weight"] is not weight
    assert not np.array_equal(args["conv_weight"], before)
    assert (sorted(args), [*aux]) == (["conv_bias", "conv_weight"], [])


def edited(symbol: Symbol, name: str, **attrs: str) -> Symbol:
    """Set attributes of a node that the functions of sym would refuse."""
    graph = json.loads(symbol.tojson())
    for node in graph["nodes"]:
        if node["name"] == name:
            node.setdefault("attrs", {}).update(attrs)
    return sym.load_json(json.dumps(graph))


@pytest.mark.parametrize(
    ("node", "attrs", "parameter", "message"),
    [
        ("norm", {"eps": "small"}, None, "BatchNorm 'norm' has eps=small, which is no number"),
        ("norm", {}, "norm_gamma", "BatchNorm 'norm' has 6 channels, but its parameter 'norm_gam"),
        ("norm", {}, "norm_moving_var", "has 6 channels, but its parameter 'norm_moving_var' has"),
        ("conv", {"no_bias": "False"}, None, "Convolution 'conv' has 2 inputs"),
    ],
)
def test_inconsistent_graphs(
    node: str, attrs: dict[str, str], parameter: str | None, message: str
) -> None:
    symbol, args, aux = small()
    symbol = edited(symbol, node, **attrs)
    for each in (args, aux):
        if parameter in each:
            each[parameter] = np.ones(7, np.float32)
    kept = [{name: array.copy() for name, array in each.items()} for each in (args, aux)]
    with pytest.raises(passlib.PassError, match="foldBatchNorm") as error:
        symbol.optimize_for("foldBatchNorm", args, aux, skip_infer=True)
    assert message in str(error.value)
    assert len(error.value.messages) == 1
    for each, before in zip((args, aux), kept, strict=True):
        assert [*each] == [*before]
        for name, array in before.items():
            np.testing.assert_array_equal(each[name], array)


def test_layer_of_a_failing_graph_stays() -> None:
    """The first layer can be folded and the second is inconsistent, so neither is folded."""
    symbol = norm(conv(norm(conv(data(), no_bias=True)), "c2"), "n2")
    model = make_model(symbol, SQUARE)
    args, aux = dict(model.args), dict(model.aux)
    args["n2_gamma"] = np.ones(2, np.float32)
    before = args["conv_weight"].copy()
    with pytest.raises(passlib.PassError, match="'n2'"):
        symbol.optimize_for("foldBatchNorm", args, aux, skip_infer=True)
    assert "conv_bias" not in args
    assert len(aux) == 4
    np.testing.assert_array_equal(args["conv_weight"], before)


def test_nodes_that_others_wait_for_stay() -> None:
    symbol, args, aux = small()
    graph = json.loads(sym.Group([symbol, sym.relu(sym.var("other"), name="late")]).tojson())
    position = {node["name"]: i for i, node in enumerate(graph["nodes"])}
    graph["nodes"][position["late"]]["control_deps"] = [position["norm"]]
    waiting = sym.load_json(json.dumps(graph))
    result = waiting.optimize_for("foldBatchNorm", args, aux, skip_infer=True)
    assert norms(result) == 1


def test_layers_of_one_name() -> None:
    """MXNet writes operators with equal names for blocks that are used twice."""
    first = norm(conv(data(), "conv", no_bias=True, weight=sym.var("a_weight")), "n1")
    second = conv(first, "conv", no_bias=True, weight=sym.var("other"))
    model = make_model(norm(second, "n2"), SQUARE)
    result = model.optimize_for("foldBatchNorm")
    assert sorted(result.args) == ["a_bias", "a_weight", "other", "other_bias"]
    x = np.random.default_rng(3).normal(size=SQUARE).astype(np.float32)
    assert_close(outputs(result, x)[0], outputs(model, x)[0], 1e-5)
