"""Passes on blocks."""

from __future__ import annotations

import numpy as np
import pytest

import passlib
from dense_layer import BIAS, WEIGHT, X, Y, layer
from passlib import nd, nn, sym
from passlib.errors import GraphError, PassError, PasslibError
from recorded_models import MODELS, WITH_WEIGHTS, assert_close, recorded

pytestmark = pytest.mark.usefixtures("passes")


@pytest.mark.parametrize("x", [X, nd.array(X), sym.var("anything", shape=(2, 2))])
def test_shapes_and_values_reach_the_pass(block, x, tmp_path):
    block.optimize_for(x, backend="tellWhatISee")
    attrs = sym.load(block.export(tmp_path / "x")[0]).list_attr()
    values = "data;fc_weight;fc_bias;" if isinstance(x, np.ndarray) else "fc_weight;fc_bias;"
    assert attrs["__values__"] == values
    assert attrs["__shapes__"] == "data[[2,2]];fc_weight[[3,2]];fc_bias[[3]];"


@pytest.mark.parametrize("way", ["optimize_for", "hybridize"])
def test_options_reach_the_pass_and_are_forgotten(block, way, tmp_path):
    def apply(**options):
        if way == "optimize_for":
            block.optimize_for(X, backend="tellWhatISee", static_alloc=True, **options)
        else:
            block.hybridize(backend="tellWhatISee", static_alloc=True, **options)
            block(X)
        return sym.load(block.export(tmp_path / "x")[0]).list_attr()["__options__"]

    assert apply(backend_opts={"a": 1, "b": True}, c=[1, 2]) == "a=1;b=True;c=[1, 2];"
    assert apply() == ""


def test_passes_add_up(block, tmp_path):
    block.hybridize(static_alloc=True, static_shape=True)
    block.optimize_for(X, backend="scaleInPlace", name="fc_weight", factor=2)
    block.optimize_for(X, backend="appendScale", name="by", value=3)
    block.optimize_for(X, backend="dropBias", name="fc")
    expected = 6 * (Y - BIAS)
    np.testing.assert_allclose(block(X), expected, rtol=1e-6)
    assert sorted(block.collect_params()) == ["by", "fc_weight"]
    files = block.export(tmp_path / "x")
    assert sorted(nd.load(files[1])) == ["arg:by", "arg:fc_weight"]
    np.testing.assert_allclose(
        nn.SymbolBlock.imports(files[0], ["data"], files[1])(X), expected, rtol=1e-6
    )


def test_clear_starts_from_the_original(block):
    block.optimize_for(X, backend="scaleInPlace", name="fc_weight", factor=2)
    block.optimize_for(X, backend="appendScale", name="by", value=3, clear=True)
    np.testing.assert_allclose(block(X), 3 * Y, rtol=1e-6)
    block.hybridize(clear=True)
    np.testing.assert_allclose(block(X), Y)
    assert sorted(block.collect_params()) == ["fc_bias", "fc_weight"]


def test_hybridize_keeps_what_passes_did(block):
    block.optimize_for(X, backend="appendScale", name="by", value=3)
    block.hybridize(static_alloc=True)
    np.testing.assert_allclose(block(X), 3 * Y, rtol=1e-6)


def test_hybridize_runs_the_pass_once_at_the_first_call(block, tmp_path):
    block.hybridize(backend="scaleInPlace", name="fc_weight", factor=2)
    with pytest.raises(PasslibError, match="'scaleInPlace' was scheduled with hybridize"):
        block.export(tmp_path / "x")
    for _ in range(2):
        np.testing.assert_allclose(block(X), 2 * (Y - BIAS) + BIAS, rtol=1e-6)
    block.export(tmp_path / "x")


def test_hybridize_taken_back(block):
    block.hybridize(backend="scaleInPlace", name="fc_weight", factor=2)
    block.hybridize(active=False)
    np.testing.assert_allclose(block(X), Y)


def test_added_state(block, tmp_path):
    block.optimize_for(X, backend="appendBatchNorm", channels=3)
    np.testing.assert_allclose(block(X), (Y - 1) / 2, rtol=1e-5)
    mean = block.params["added_bn_moving_mean"]
    assert mean.grad_req == "null"
    assert mean.shape == (3,)
    block.reset_ctx(passlib.cpu())
    names = list(nd.load(block.export(tmp_path / "x")[1]))
    assert [name for name in names if name.startswith("aux:")] == [
        "aux:added_bn_moving_mean",
        "aux:added_bn_moving_var",
    ]


def test_input_stays_as_it_is(block):
    data = nd.array(X)
    block.optimize_for(data, backend="scaleInPlace", name="data", factor=2)
    np.testing.assert_array_equal(data, X)
    assert data.flags.writeable
    np.testing.assert_allclose(block(data), Y)


@pytest.mark.parametrize("way", ["optimize_for", "hybridize"])
@pytest.mark.parametrize(
    ("backend", "options", "error", "message"),
    [
        ("scaleAndFail", {"name": "fc_weight", "factor": 2}, PassError, "failed on purpose"),
        ("noSuchPass", {}, PasslibError, "no pass or partitioner 'noSuchPass'"),
        ("addOrphan", {}, GraphError, "added the variable 'orphan'.*alloc_arg"),
    ],
)
def test_failure_changes_nothing(block, way, backend, options, error, message):
    def apply():
        if way == "optimize_for":
            block.optimize_for(X, backend=backend, **options)
        else:
            block.hybridize(backend=backend, **options)
            block(X)

    for _ in range(2):
        with pytest.raises(error, match=message):
            apply()
        block.hybridize(active=False)
        np.testing.assert_allclose(block(X), Y)


def test_waiting_pass_runs_before_the_next(block):
    block.hybridize(backend="appendScale", name="by", value=3)
    block.optimize_for(X, backend="scaleInPlace", name="by", factor=2)
    np.testing.assert_allclose(block(X), 6 * Y, rtol=1e-6)


def test_parameters_that_wait_get_their_values():
    made = nn.SymbolBlock(layer(), sym.var("data"))
    made.initialize("ones")
    made.optimize_for(sym.var("x", shape=(4, 2)), backend="dropBias", name="fc")
    np.testing.assert_allclose(made(X), np.broadcast_to(X.sum(1, keepdims=True), (2, 3)))


def test_without_values_as_the_tutorial_has_it():
    made = nn.SymbolBlock(layer(), sym.var("data"))
    made.optimize_for(X, backend="tellWhatISee")
    made.initialize("ones")
    assert made(X).shape == (2, 3)


def test_values_set_after_a_pass(block):
    block.optimize_for(X, backend="scaleInPlace", name="fc_weight", factor=2)
    block.params["fc_weight"].set_data(0 * WEIGHT)
    np.testing.assert_allclose(block(X), np.broadcast_to(BIAS, (2, 3)))
    block.hybridize(clear=True)
    np.testing.assert_allclose(block(X), Y)


def test_no_backend(block):
    with pytest.raises(ValueError, match="backend="):
        block.optimize_for(X)
    with pytest.raises(ValueError, match="options level need a pass"):
        block.hybridize(level=3)


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_whole_model(name, tmp_path):
    made = nn.SymbolBlock.imports(
        MODELS / f"{name}-symbol.json", "data", MODELS / f"{name}-0000.params"
    )
    inputs, outputs = recorded(name)
    data, expected = inputs["data"], outputs[0]
    made.optimize_for(nd.array(data), backend="appendScale", name="by", value=2)
    assert_close(made(data), 2 * expected)
    files = made.export(tmp_path / "x")
    again = nn.SymbolBlock.imports(files[0], "data", files[1])
    assert_close(again(data), 2 * expected)
