"""The example that folds BatchNorm: what it folds, what it leaves, and that results stay."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import passlib
import places
from example_build import build_example
from passlib import sym
from passlib.model import Model
from passlib.symbol import Symbol

MODELS = places.DATA / "mxnet" / "models"

pytestmark = pytest.mark.usefixtures("libraries", "handover")


@pytest.fixture(scope="module")
def libraries() -> None:
    for folder, source in (("lib_pass", "pass_lib.cc"), ("lib_fold", "fold_batch_norm.cc")):
        passlib.library.load(build_example(folder, source), verbose=False, replace=True)


def batch_norms(symbol: Symbol) -> int:
    return sum("BatchNorm" in node.op for node in symbol.nodes())


def assert_close(actual: object, expected: object, tolerance: float) -> None:
    left, right = np.asarray(actual), np.asarray(expected)
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert np.isfinite(right).all()
    scale = np.abs(right).max()
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * scale)


PASSES = {
    "nothing": (),
    "fold": ("foldBatchNorm",),
    "no-ops": ("removeNoOps",),
    "relu": ("fuseBatchNormRelu",),
    "all": ("removeNoOps", "foldBatchNorm", "fuseBatchNormRelu"),
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
        assert batch_norms(model.symbol) == 0


@pytest.mark.parametrize(("name", "layers"), [("mobilenet0.25", 27), ("resnet_v1_small", 9)])
def test_four_parameters_go_and_one_comes(name: str, layers: int) -> None:
    model = passlib.load(MODELS / name)
    assert batch_norms(model.symbol) == layers
    folded = model.optimize_for("foldBatchNorm")
    # The convolutions of these models have no bias.
    assert len(folded.args) == len(model.args) - 2 * layers + layers
    assert len(folded.aux) == 0
    assert len(folded.symbol.nodes()) == len(model.symbol.nodes()) - 5 * layers + layers
    assert set(folded.symbol.list_arguments()) == {*folded.args, "data"}


def data() -> Symbol:
    return sym.var("data")


def conv(x: Symbol, name: str = "conv", **attrs: object) -> Symbol:
    attrs = {"kernel": (3, 3), "num_filter": 6, "pad": (1, 1), **attrs}
    return sym.Convolution(x, name=name, **attrs)


def norm(x: Symbol, name: str = "norm", **attrs: object) -> Symbol:
    return sym.BatchNorm(x, name=name, **{"fix_gamma": False, **attrs})


def deconv(**attrs: object) -> Symbol:
    attrs = {"kernel": (3, 3), "num_filter": 6, "stride": (2, 2), **attrs}
    return norm(sym.Deconvolution(data(), name="deconv", **attrs))


def dense(**attrs: object) -> Symbol:
    return sym.FullyConnected(data(), num_hidden=5, name="fc", **attrs)


def shared_variable(which: str) -> Symbol:
    shared = sym.var("shared")
    attrs = {"num_filter": 4}
    first = conv(data(), "first", **attrs, **{which: shared})
    second = conv(norm(first, "norm1"), "second", **attrs, **{which: shared})
    return norm(second, "norm2")


def shared_statistics() -> Symbol:
    own = {key: sym.var(f"all_{key}") for key in ("gamma", "beta", "moving_mean", "moving_var")}
    first = norm(conv(data(), "first"), "norm1", **own)
    return norm(conv(first, "second"), "norm2", **own)


def two_users() -> Symbol:
    x = conv(data())
    return sym.broadcast_add(norm(x), sym.relu(x))


def statistics_used() -> Symbol:
    both = norm(conv(data()), output_mean_var=True)
    return sym.Group([both[0], sym.exp(both[1])])


def statistics_as_output() -> Symbol:
    both = norm(conv(data()), output_mean_var=True)
    return sym.Group([both[0], both[2]])


def taken_name() -> Symbol:
    x = norm(conv(data(), no_bias=True))
    return sym.broadcast_mul(x, sym.reshape(sym.var("conv_bias", shape=(6,)), shape=(1, 6, 1, 1)))


def gamma_used_elsewhere() -> Symbol:
    gamma = sym.var("gamma")
    x = norm(conv(data()), gamma=gamma)
    return sym.broadcast_mul(x, sym.reshape(gamma, shape=(1, 6, 1, 1)))


def after_relu() -> Symbol:
    return norm(sym.relu(conv(data())))


def head_behind_layer() -> Symbol:
    x = conv(data())
    return sym.Group([norm(x), x])


def parameter_is_output() -> Symbol:
    weight = sym.var("weight")
    return sym.Group([norm(conv(data(), weight=weight)), weight])


def beta_is_output() -> Symbol:
    beta = sym.var("beta")
    return sym.Group([norm(conv(data()), beta=beta), beta])


def computed_weight() -> Symbol:
    return norm(conv(data(), weight=sym.tanh(sym.var("raw", shape=(6, 4, 3, 3)))))


def mean_as_data() -> Symbol:
    both = norm(sym.expand_dims(norm(conv(data()), "first", output_mean_var=True)[1], 0))
    return sym.Group([both])


SQUARE = (2, 4, 5, 5)

# What to build, the shape of the data, how many BatchNorm are folded and how many stay.
CASES: dict[str, tuple[Callable[[], Symbol], tuple[int, ...], int, int]] = {
    "convolution with bias": (lambda: norm(conv(data())), SQUARE, 1, 0),
    "convolution without bias": (lambda: norm(conv(data(), no_bias=True)), SQUARE, 1, 0),
    "no_bias written as 1": (lambda: norm(conv(data(), no_bias="1")), SQUARE, 1, 0),
    "two groups": (lambda: norm(conv(data(), num_group=2)), SQUARE, 1, 0),
    "a group a channel": (lambda: norm(conv(data(), num_group=4, num_filter=8)), SQUARE, 1, 0),
    "one spatial axis": (lambda: norm(conv(data(), kernel=3, pad=1)), (2, 4, 7), 1, 0),
    "three spatial axes": (
        lambda: norm(conv(data(), kernel=(2, 2, 2), pad=(0, 0, 0))),
        (1, 3, 4, 5, 6),
        1,
        0,
    ),
    "channels last": (lambda: norm(conv(data(), layout="NHWC"), axis=3), (2, 5, 5, 4), 1, 0),
    "channels last, counted from the end": (
        lambda: norm(conv(data(), layout="NHWC"), axis=-1),
        (2, 5, 5, 4),
        1,
        0,
    ),
    "axis counted from the end": (lambda: norm(conv(data()), axis=-3), SQUARE, 1, 0),
    "axis of rows": (lambda: norm(conv(data()), axis=2), SQUARE, 0, 1),
    "channels last, default axis": (lambda: norm(conv(data(), layout="NHWC")), (2, 5, 6, 4), 0, 1),
    "gamma fixed": (lambda: norm(conv(data()), fix_gamma=True), SQUARE, 1, 0),
    "gamma fixed by default": (
        lambda: sym.BatchNorm(conv(data()), name="norm"),
        SQUARE,
        1,
        0,
    ),
    "large eps": (lambda: norm(conv(data()), eps=0.5), SQUARE, 1, 0),
    "global statistics": (lambda: norm(conv(data()), use_global_stats=True), SQUARE, 1, 0),
    "BatchNorm_v1": (
        lambda: sym.BatchNorm_v1(conv(data()), name="norm", fix_gamma=False),
        SQUARE,
        1,
        0,
    ),
    "transposed": (deconv, SQUARE, 1, 0),
    "transposed, two groups": (lambda: deconv(num_group=2), SQUARE, 1, 0),
    "transposed, four groups, bias": (
        lambda: deconv(num_group=4, num_filter=12, no_bias=False),
        SQUARE,
        1,
        0,
    ),
    "dense": (lambda: norm(dense()), SQUARE, 1, 0),
    "dense without bias": (lambda: norm(dense(no_bias=True), axis=-1), SQUARE, 1, 0),
    "dense, several axes": (lambda: norm(dense(flatten=False), axis=-1), (2, 3, 4), 1, 0),
    "dense, several axes, last by number": (
        lambda: norm(dense(flatten=False), axis=2),
        (2, 3, 4),
        1,
        0,
    ),
    "dense, several axes, another": (lambda: norm(dense(flatten=False)), (2, 3, 4), 0, 1),
    "one behind the other": (lambda: norm(norm(conv(data()), "a"), "b"), SQUARE, 2, 0),
    "a usable one and another": (
        lambda: norm(norm(conv(data()), "a"), "b", axis=3),
        SQUARE,
        1,
        1,
    ),
    "two layers": (lambda: norm(conv(norm(conv(data())), "c2"), "n2"), SQUARE, 2, 0),
    "shared statistics": (shared_statistics, (2, 6, 5, 5), 2, 0),
    "gamma used elsewhere": (gamma_used_elsewhere, SQUARE, 1, 0),
    "beta is an output": (beta_is_output, SQUARE, 1, 0),
    "name of the bias taken": (taken_name, SQUARE, 1, 0),
    "relu between": (after_relu, SQUARE, 0, 1),
    "before the layer": (lambda: conv(norm(data())), SQUARE, 0, 1),
    "shared weight": (lambda: shared_variable("weight"), SQUARE, 0, 2),
    "shared bias": (lambda: shared_variable("bias"), SQUARE, 0, 2),
    "second user of the layer": (two_users, SQUARE, 0, 1),
    "layer is an output": (head_behind_layer, SQUARE, 0, 1),
    "weight is an output": (parameter_is_output, SQUARE, 0, 1),
    "mean used": (statistics_used, SQUARE, 0, 1),
    "variance is an output": (statistics_as_output, SQUARE, 0, 1),
    "mean is the data of another": (mean_as_data, SQUARE, 0, 2),
    "computed weight": (computed_weight, SQUARE, 0, 1),
}


def make_model(symbol: Symbol, shape: tuple[int, ...], dtype: str = "float32") -> Model:
    """Random parameters, of which no two are alike; statistics as BatchNorm has them."""
    random = np.random.default_rng(7)
    argument_shapes, _, state_shapes = symbol.infer_shape(data=shape)
    assert argument_shapes is not None
    args = {
        name: random.normal(size=extent).astype(dtype)
        for name, extent in zip(symbol.list_arguments(), argument_shapes, strict=True)
        if name != "data"
    }
    aux = {
        name: random.uniform(0.5, 2, extent).astype(dtype)
        for name, extent in zip(symbol.list_auxiliary_states(), state_shapes, strict=True)
    }
    return Model(symbol, args, aux)


def outputs(model: Model, x: np.ndarray) -> list[np.ndarray]:
    result = model(x)
    return [np.asarray(each) for each in (result if isinstance(result, list) else [result])]


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    build, shape, folded, left = CASES[case]
    model = make_model(build(), shape)
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    result = model.optimize_for("foldBatchNorm", shape_dict={"data": shape})
    assert batch_norms(model.symbol) == folded + left
    assert batch_norms(result.symbol) == left
    for before, after in zip(outputs(model, x), outputs(result, x), strict=True):
        assert_close(after, before, 1e-5)
    assert result.symbol.list_outputs() == model.symbol.list_outputs()
    used = {*result.symbol.list_inputs()} - {"data"}
    assert {*result.args, *result.aux} == used
    if not folded:
        assert result.symbol.tojson() == model.symbol.tojson()


@pytest.mark.parametrize(("axis", "left"), [(2, 1), (-1, 0)])
def test_axis_of_dense_without_shapes(axis: int, left: int) -> None:
    """The pass cannot know then that axis 2 is the last, but the last is the last."""
    model = make_model(norm(dense(flatten=False), axis=axis), (2, 3, 4))
    assert batch_norms(model.optimize_for("foldBatchNorm", skip_infer=True).symbol) == left


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("bias", [True, False])
def test_precisions(dtype: str, bias: bool) -> None:
    """What is stored is the exact result, rounded to the precision of the layer."""
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
    """All finite numbers of half precision, each scaled by a factor of its own."""
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
    assert batch_norms(folded.symbol) == 0
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
    assert batch_norms(symbol.optimize_for("foldBatchNorm")) == 1
    assert batch_norms(symbol.optimize_for("foldBatchNorm", args, skip_infer=True)) == 1
    assert batch_norms(symbol.optimize_for("foldBatchNorm", None, aux, skip_infer=True)) == 1


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
    """The symbol with other attributes on a node, which the functions of sym would refuse."""
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
    """The first layer can be folded, the second is inconsistent: nothing is."""
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
    assert batch_norms(result) == 1


def test_layers_of_one_name() -> None:
    """MXNet writes operators of one name for blocks that are used twice."""
    first = norm(conv(data(), "conv", no_bias=True, weight=sym.var("a_weight")), "n1")
    second = conv(first, "conv", no_bias=True, weight=sym.var("other"))
    model = make_model(norm(second, "n2"), SQUARE)
    result = model.optimize_for("foldBatchNorm")
    assert sorted(result.args) == ["a_bias", "a_weight", "other", "other_bias"]
    x = np.random.default_rng(3).normal(size=SQUARE).astype(np.float32)
    assert_close(outputs(result, x)[0], outputs(model, x)[0], 1e-5)
