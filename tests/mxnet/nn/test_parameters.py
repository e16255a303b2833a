"""Parameters of blocks."""

from __future__ import annotations

import numpy as np
import pytest

import passlib
from dense_layer import BIAS, WEIGHT, X, Y, layer
from passlib import model, nd, nn, sym
from passlib.errors import GraphError, PasslibError, UnsupportedError


def test_uninitialized():
    made = nn.SymbolBlock(layer(), sym.var("data"))
    with pytest.raises(PasslibError, match=r"'fc_weight' has no values yet: call initialize"):
        made(X)
    made.initialize()
    with pytest.raises(PasslibError, match="'fc_weight' has no values yet: its shape"):
        made.params["fc_weight"].data()
    with pytest.raises(PasslibError, match="'fc_weight' has no values yet"):
        made.params.list_ctx()


def test_shapes_follow_from_the_first_call():
    made = nn.SymbolBlock(sym.BatchNorm(layer(), name="bn"), sym.var("data"))
    made.initialize()
    assert made.params["fc_weight"].shape is None
    made(X)
    params = made.collect_params()
    assert {name: p.shape for name, p in params.items()} == {
        "fc_weight": (3, 2),
        "fc_bias": (3,),
        "bn_gamma": (3,),
        "bn_beta": (3,),
        "bn_moving_mean": (3,),
        "bn_moving_var": (3,),
    }
    assert {p.dtype for p in params.values()} == {np.dtype(np.float32)}
    assert [name for name, p in params.items() if p.grad_req == "null"] == [
        "bn_moving_mean",
        "bn_moving_var",
    ]


def test_shape_of_the_variable():
    weight = sym.var("w", shape=(3, 2), dtype="float64")
    made = nn.SymbolBlock(sym.dot(sym.var("data"), weight), sym.var("data"))
    made.initialize("ones")
    data = made.params["w"].data()
    assert data.dtype == np.float64
    np.testing.assert_array_equal(data, np.ones((3, 2)))


def test_shape_that_does_not_follow():
    made = nn.SymbolBlock(sym.dot(sym.var("data"), sym.var("w")), sym.var("data"))
    made.initialize()
    with pytest.raises(GraphError, match=r"parameter 'w' cannot be inferred.*data \(2, 2\)"):
        made(X)


def test_uniform_leaves_the_rest_sane():
    made = nn.SymbolBlock(sym.BatchNorm(layer(), name="bn"), sym.var("data"))
    made.initialize(seed=7)
    out = made(X)
    values = {name: np.asarray(p.data()) for name, p in made.params.items()}
    assert 0 < np.abs(values["fc_weight"]).max() <= 0.07
    for name, constant in (
        ("fc_bias", 0),
        ("bn_beta", 0),
        ("bn_moving_mean", 0),
        ("bn_gamma", 1),
        ("bn_moving_var", 1),
    ):
        np.testing.assert_array_equal(values[name], constant)
    assert np.isfinite(out).all()
    again = nn.SymbolBlock(sym.BatchNorm(layer(), name="bn"), sym.var("data"))
    again.initialize(seed=7)
    np.testing.assert_array_equal(again(X), out)


def test_normal():
    made = nn.SymbolBlock(sym.dot(sym.var("x"), sym.var("w", shape=(200, 200))), sym.var("x"))
    made.initialize("normal", seed=1)
    assert np.std(made.params["w"].data()) == pytest.approx(0.01, rel=0.05)


def test_initializer_of_ones_own():
    made = nn.SymbolBlock(layer(), sym.var("data"))
    made.initialize(lambda name, shape, dtype: np.full(shape, len(name)))
    made(X)
    np.testing.assert_array_equal(made.params["fc_weight"].data(), 9)
    made.initialize(lambda name, shape, dtype: np.ones(7))
    np.testing.assert_array_equal(made.params["fc_weight"].data(), 9)
    with pytest.raises(ValueError, match=r"shape \(7,\) for parameter 'fc_weight', not \(3, 2\)"):
        made.initialize(lambda name, shape, dtype: np.ones(7), force_reinit=True)


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [("nonsense", ValueError, "'nonsense'; the names are bilinear"), (3, TypeError, "not int")],
)
def test_unknown_initializer(init, error, message):
    with pytest.raises(error, match=message):
        nn.SymbolBlock(layer(), sym.var("data")).initialize(init)


def test_set_data_counts_at_the_next_call(block):
    np.testing.assert_allclose(block(X), Y)
    block.params["fc_bias"].set_data(np.zeros(3))
    np.testing.assert_allclose(block(X), Y - BIAS)


def test_writing_to_data_counts_at_the_next_call(block):
    np.testing.assert_allclose(block(X), Y)
    bias = block.params["fc_bias"].data()
    bias[:] = 0
    np.testing.assert_allclose(block(X), Y - BIAS)
    block.params["fc_bias"].set_data(BIAS)
    np.testing.assert_allclose(bias, BIAS)
    (other,) = block.params["fc_bias"].list_data()
    other[:] = 2 * BIAS
    np.testing.assert_allclose(block(X), Y + BIAS)


def test_set_data_of_another_shape(block):
    with pytest.raises(ValueError, match=r"'fc_bias' has shape \(3,\), not \(4,\)"):
        block.params["fc_bias"].set_data(np.zeros(4))


def test_arrays_given_are_shared():
    weight = nd.array(WEIGHT)
    made = nn.SymbolBlock(layer(), sym.var("data"), {"arg:fc_weight": weight, "fc_bias": BIAS})
    np.testing.assert_allclose(made(X), Y)
    weight[:] = 0
    np.testing.assert_allclose(made(X), np.broadcast_to(BIAS, (2, 3)))


def test_read_only_arrays_are_replaced():
    weights = model.Model(layer(), {"fc_weight": WEIGHT, "fc_bias": BIAS}).args
    made = nn.SymbolBlock(layer(), sym.var("data"), weights)
    made.params["fc_bias"].set_data(0 * BIAS)
    np.testing.assert_allclose(made(X), Y - BIAS)
    np.testing.assert_array_equal(weights["fc_bias"], BIAS)


def test_parameters_given_are_shared(block):
    internals = layer().get_internals()
    other = nn.SymbolBlock(internals["fc_output"] * 2, sym.var("data"), block.collect_params())
    np.testing.assert_allclose(other(X), 2 * Y)
    block.params["fc_bias"].set_data(np.zeros(3))
    np.testing.assert_allclose(other(X), 2 * (Y - BIAS))


def test_cast(block):
    for parameter in block.params.values():
        parameter.cast("float64")
    out = block(X.astype(np.float64))
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, Y)


def test_select(block):
    assert list(block.collect_params(".*bias")) == ["fc_bias"]


def test_gpu_and_gradients(block):
    bias = block.params["fc_bias"]
    assert bias.list_ctx() == block.params.list_ctx() == [passlib.cpu()]
    block.reset_ctx(passlib.cpu(0))
    for refused in (
        lambda: block.reset_ctx(passlib.gpu()),
        lambda: block.reset_ctx([passlib.cpu(), passlib.gpu()]),
        lambda: bias.data(passlib.gpu()),
        lambda: block.initialize(ctx=passlib.gpu()),
        bias.grad,
    ):
        with pytest.raises(UnsupportedError, match=r"fc_weight|fc_bias"):
            refused()


def test_repr_and_var(block):
    bias = block.params["fc_bias"]
    assert repr(bias) == "Parameter fc_bias (shape=(3,), dtype=float32)"
    assert repr(bias) in repr(block.params)
    assert bias.var().attr("__shape__") == "(3,)"


def test_set_attribute_of_all(block):
    block.params.setattr("grad_req", "null")
    assert {p.grad_req for p in block.params.values()} == {"null"}
