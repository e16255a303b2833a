"""MXNet's initializers: rules for names, distributions, text, and use in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passlib as mx
from passlib import init, nd
from passlib.errors import UnsupportedError

OLDER = {"bn_moving_mean": 0, "bn_moving_var": 1, "x_moving_avg": 0, "x_moving_inv_var": 0}
BOTH = {"fc_bias": 0, "bn_beta": 0, "bn_gamma": 1, "a_min": 0, "a_max": 1, "fc_weight": 3}


@pytest.mark.parametrize(("name", "wanted"), {**BOTH, **OLDER}.items())
def test_rules_for_names(name: str, wanted: float) -> None:
    array = nd.full((2, 3), 9)
    init.Constant(3)(name, array)
    assert np.unique(array).tolist() == [wanted]
    described = nd.full((2, 3), 9)
    if name in OLDER:
        with pytest.raises(ValueError, match="no rule"):
            init.Constant(3)(init.InitDesc(name), described)
    else:
        init.Constant(3)(init.InitDesc(name), described)
        assert np.unique(described).tolist() == [wanted]


def test_names_without_a_rule() -> None:
    with pytest.raises(ValueError, match=r"no rule for the parameter 'data'.*init="):
        init.Uniform()("data", nd.ones(2))


def test_spatial_transformers_and_upsampling() -> None:
    location = nd.zeros((6,))
    init.Uniform()("stn_loc_bias", location)
    assert location.asnumpy().tolist() == [1, 0, 0, 0, 1, 0]
    weights = nd.zeros((1, 1, 4, 4))
    init.Uniform()("upsampling0_weight", weights)
    edge, middle = [0.0625, 0.1875, 0.1875, 0.0625], [0.1875, 0.5625, 0.5625, 0.1875]
    assert weights.asnumpy()[0, 0].tolist() == [edge, middle, middle, edge]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (init.Uniform(), '["uniform", {"scale": 0.07}]'),
        (init.Normal(2), '["normal", {"sigma": 2}]'),
        (init.Zero(), '["zero", {}]'),
        (init.Constant(3), '["constant", {"value": 3}]'),
        (
            init.Xavier(factor_type="in", magnitude=2),
            '["xavier", {"rnd_type": "uniform", "factor_type": "in", "magnitude": 2}]',
        ),
        (init.MSRAPrelu(), '["msraprelu", {"factor_type": "avg", "slope": 0.25}]'),
        (init.Orthogonal(), '["orthogonal", {"scale": 1.414, "rand_type": "uniform"}]'),
        (init.LSTMBias(2.5), '["lstmbias", {"forget_bias": 2.5}]'),
        (
            init.FusedRNN(None, 2, 1, "lstm"),
            (
                '["fusedrnn", {"init": null, "num_hidden": 2, "num_layers": 1, "mode": "lstm", '
                '"bidirectional": false, "forget_bias": 1.0}]'
            ),
        ),
    ],
)
def test_text_is_mxnets_and_makes_an_equal_one(made: init.Initializer, text: str) -> None:
    assert made.dumps() == text
    assert init.create(text) == made
    assert mx.sym.var("x", init=made).attr("__init__") == text


@pytest.mark.parametrize(
    ("make", "deviation", "most"),
    [
        (lambda: init.Uniform(0.5), 0.5 / 3**0.5, 0.5),
        (lambda: init.Normal(2), 2, np.inf),
        (init.Xavier, 0.25 / 3**0.5, 0.25),
        (lambda: init.Xavier("gaussian", "in", 2), (2 / 32) ** 0.5, np.inf),
        (lambda: init.Xavier("gaussian", "out", 2), (2 / 64) ** 0.5, np.inf),
        (init.MSRAPrelu, (2 / 1.0625 / 48) ** 0.5, np.inf),
    ],
)
def test_distributions(make: Callable[[], Any], deviation: float, most: float) -> None:
    array = nd.zeros((64, 32))
    make()(init.InitDesc("fc_weight"), array)
    assert np.std(array.asnumpy()) == pytest.approx(deviation, rel=0.1)
    assert np.abs(array.asnumpy()).max() <= most


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 3, 4)])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_orthogonal(shape: tuple[int, ...], kind: str) -> None:
    array = nd.zeros(shape)
    init.Orthogonal(rand_type=kind)(init.InitDesc("fc_weight"), array)
    matrix = array.asnumpy().reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 1.414**2 * np.eye(len(product)), atol=1e-5)


def test_fused_rnn() -> None:
    array = nd.zeros((2 * 4 * 3 + 2 * 4 * 2 + 16,))
    text = init.FusedRNN(None, 2, 1, "lstm", forget_bias=5.0).dumps()
    desc = init.InitDesc("rnn_parameters", {"__init__": text}, init.Constant(7))
    init.Uniform()(desc, array)
    assert array.asnumpy().tolist() == [7] * 40 + [0, 0, 5, 5, 0, 0, 0, 0] * 2
    deeper = nd.zeros((2 * (6 * 3 + 6 * 2 + 6 * 4 + 6 * 2) + 4 * 12,))
    init.FusedRNN("one", 2, 2, "gru", True)._init_weight("rnn", deeper)
    assert deeper.asnumpy().tolist() == [1] * 132 + [0] * 48
    with pytest.raises(ValueError, match="which no RNN"):
        init.FusedRNN("one", 2, 2, "gru", True)._init_weight("rnn", nd.zeros((100,)))


def test_mixed_and_load() -> None:
    mixed = init.Mixed(["bias", ".*"], [init.Zero(), init.One()])
    array = nd.full((2,), 9)
    mixed("bias_x_weight", array)
    assert array.asnumpy().tolist() == [0, 0]
    mixed("fc_weight", array)
    assert array.asnumpy().tolist() == [1, 1]
    loaded = init.Load({"arg:w": nd.full((2,), 5), "b": nd.ones(3)}, init.Zero())
    loaded("w", array)
    assert array.asnumpy().tolist() == [5, 5]
    loaded("other_weight", array)
    assert array.asnumpy().tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"shape \(2,\).*\(3,\)"):
        loaded("b", array)
    with pytest.raises(ValueError, match="no default_init"):
        init.Load({})("b", array)
    with pytest.raises(ValueError, match="no pattern"):
        init.Mixed(["bias"], [init.Zero()])("fc_weight", array)


def test_own_initializers() -> None:
    @init.register
    class OfATest(init.Initializer):
        def __init__(self, value: float = 2) -> None:
            super().__init__(value=value)
            self.value = value

        def _init_weight(self, _: str, arr: Any) -> None:
            arr[:] = self.value

    block = dense()
    block.initialize(OfATest(4))
    assert np.unique(block.params["fc_weight"].data()).tolist() == [4]
    assert init.create("OfATest", value=7).dumps() == '["ofatest", {"value": 7}]'
    with pytest.raises(ValueError, match="unknown initializer 'nonsense'"):
        init.create("nonsense")


def dense() -> Any:
    output = mx.sym.FullyConnected(
        mx.sym.var("data"),
        mx.sym.var("fc_weight", shape=(4, 3)),
        mx.sym.var("fc_bias", shape=(4,)),
        num_hidden=4,
        name="fc",
    )
    return mx.gluon.SymbolBlock(output, mx.sym.var("data"))


@pytest.mark.parametrize("given", [init.Xavier(), "xavier", init.Xavier(magnitude=3)])
def test_blocks_take_initializers(given: Any) -> None:
    block = dense()
    block.initialize(given)
    weight = block.params["fc_weight"].data().asnumpy()
    assert 0 < np.abs(weight).max() <= (3 / 3.5) ** 0.5
    assert block.params["fc_bias"].data().asnumpy().tolist() == [0] * 4
    assert block(nd.ones((2, 3))).shape == (2, 4)


def test_the_base_class_has_no_values() -> None:
    with pytest.raises(UnsupportedError, match=r"Initializer has no values for 'w_weight'.*define"):
        init.Initializer()(init.InitDesc("w_weight"), nd.zeros((2,)))
