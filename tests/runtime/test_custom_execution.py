"""Graphs with operators of libraries run: ways to run them, pieces, sessions."""

from __future__ import annotations

import numpy as np
import pytest

from custom_graphs import W, X, partitioned, relu
from passlib import executor, model, nd, nn, sym

pytestmark = pytest.mark.usefixtures("graph_operators")


def mixed():
    """Compose a library's operator between two built-in ones."""
    x = sym.var("x")
    hidden = sym.tp_linear(sym.relu(x, name="r"), sym.var("w"), num_hidden=4, name="l")
    return sym.sigmoid(hidden, name="s")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class TestWaysToRun:
    expected = sigmoid(relu(X) @ W.T)

    def test_executor(self):
        bound = executor.bind(mixed(), None, {"x": X.copy(), "w": W})
        (out,) = bound.forward()
        assert isinstance(out, nd.NDArray)
        np.testing.assert_allclose(out, self.expected, rtol=1e-6)
        np.testing.assert_allclose(bound.forward(x=2 * X)[0], sigmoid(2 * relu(X) @ W.T), rtol=1e-6)

    def test_simple_bind(self):
        bound = executor.simple_bind(mixed(), None, x=X.shape)
        assert {name: array.shape for name, array in bound.arg_dict.items()} == {
            "x": (2, 3),
            "w": (4, 3),
        }
        bound.arg_dict["w"][:] = W
        np.testing.assert_allclose(bound.forward(x=X)[0], self.expected, rtol=1e-6)

    def test_eval(self):
        np.testing.assert_allclose(mixed().eval(x=X, w=W)[0], self.expected, rtol=1e-6)

    def test_model(self):
        loaded = model.Model(mixed(), {"w": W})
        assert loaded.inputs == ["x"]
        np.testing.assert_allclose(loaded.run({"x": X})["s_output"], self.expected, rtol=1e-6)
        np.testing.assert_allclose(loaded(X[:1]), self.expected[:1], rtol=1e-6)

    def test_block(self):
        net = nn.SymbolBlock(mixed(), sym.var("x"))
        net.initialize()
        net(nd.array(X))
        assert net.collect_params()["w"].shape == (4, 3)
        net.collect_params()["w"].set_data(nd.array(W))
        np.testing.assert_allclose(net(nd.array(X)), self.expected, rtol=1e-6)
        net.hybridize()
        np.testing.assert_allclose(net(nd.array(X)), self.expected, rtol=1e-6)

    def test_library_loaded_after_the_model(self, plugin):
        symbol = sym.load_json(mixed().tojson())
        np.testing.assert_allclose(symbol.eval(x=X, w=W)[0], self.expected, rtol=1e-6)

    def test_convolution_network(self):
        data = sym.var("data")
        conv = sym.Convolution(data, kernel=(3, 3), num_filter=4, pad=(1, 1), name="c1")
        body = sym.Pooling(sym.tp_scale(conv, factor=-0.5), kernel=(2, 2), stride=(2, 2))
        body = sym.tp_halves(body)[0] + 1
        net = sym.softmax(sym.FullyConnected(body, num_hidden=3, name="fc"))
        plain = sym.Pooling(conv * -0.5, kernel=(2, 2), stride=(2, 2))
        plain = sym.relu(plain) + 1
        plain = sym.softmax(sym.FullyConnected(plain, num_hidden=3, name="fc"))
        shapes, _, _ = net.infer_shape(data=(2, 3, 8, 8))
        random = np.random.default_rng(1)
        arrays = {
            name: random.standard_normal(shape).astype(np.float32)
            for name, shape in zip(net.list_arguments(), shapes, strict=True)
        }
        actual, expected = net.eval(**arrays)[0], plain.eval(**arrays)[0]
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


class TestShapesOfGraphs:
    """Positions of the library's operators; NumPy computes the expected values."""

    x, y = sym.var("x"), sym.var("y")
    y_value = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

    def run(self, symbol):
        arrays = {"x": X, "y": self.y_value}
        return symbol.eval(**{name: arrays[name] for name in symbol.list_inputs()})

    def cases(self):
        x, y, v = self.x, self.y, self.y_value
        scaled = sym.tp_scale(x, factor=3)
        halves = sym.tp_halves(x)
        around = sym.exp(sym.tp_scale(sym.exp(x), factor=0.1))
        chain, value = x, X
        for i in range(6):
            chain = sym.tp_scale(sym.relu(chain) + i, factor=0.5)
            value = (relu(value) + i) * 0.5
        return {
            "only the library's": (sym.tp_product(scaled, y), [3 * X * v]),
            "diamond": (sym.tp_product(sym.relu(scaled), scaled - y), [relu(3 * X) * (3 * X - v)]),
            "diamond of built-in": (
                sym.relu(scaled) + sym.exp(scaled),
                [relu(3 * X) + np.exp(3 * X)],
            ),
            "used twice": (sym.tp_product(scaled, scaled), [9 * X * X]),
            "several outputs": (
                sym.tp_product(halves[0], halves[1] - 1),
                [relu(X) * (np.minimum(X, 0) - 1)],
            ),
            "one output unused": (halves[1], [np.minimum(X, 0)]),
            "heads of all kinds": (
                sym.Group([x, scaled, halves, around, scaled, x]),
                [X, 3 * X, relu(X), np.minimum(X, 0), np.exp(0.1 * np.exp(X)), 3 * X, X],
            ),
            "six pieces": (chain, [value]),
            "independent pieces": (
                sym.tp_product(sym.relu(sym.tp_scale(sym.exp(x))), sym.relu(sym.tp_scale(y - 1))),
                [relu(2 * np.exp(X)) * relu(2 * (v - 1))],
            ),
            "short cut past a piece": (
                sym.exp(x) + sym.relu(sym.tp_scale(sym.exp(x))),
                [3 * np.exp(X)],
            ),
        }

    @pytest.mark.parametrize(
        "name",
        [
            "only the library's",
            "diamond",
            "diamond of built-in",
            "used twice",
            "several outputs",
            "one output unused",
            "heads of all kinds",
            "six pieces",
            "independent pieces",
            "short cut past a piece",
        ],
    )
    def test_values(self, name):
        symbol, expected = self.cases()[name]
        outputs = self.run(symbol)
        assert len(outputs) == len(expected)
        for actual, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5)

    def test_outputs_are_arrays_of_their_own(self):
        symbol = sym.Group([self.x, sym.tp_scale(self.x, name="s"), self.x])
        symbol = sym.Group([*symbol, symbol[1]])
        given = X.copy()
        outputs = symbol.eval(x=given)
        for output in outputs:
            output[:] = 7
        np.testing.assert_array_equal(given, X)
        assert not any(
            np.shares_memory(a, b) for i, a in enumerate(outputs) for b in outputs[i + 1 :]
        )

    def test_zero_elements(self):
        assert sym.relu(sym.tp_scale(self.x)).eval(x=np.zeros((0, 3), np.float32))[0].shape == (
            0,
            3,
        )

    def test_sessions_are_few_and_reused(self, made):
        symbol = sym.relu(sym.tp_scale(sym.exp(self.x))) + sym.tp_scale(sym.exp(self.x))
        runs = model.Model(symbol)
        for size in (1, 2, 1, 2):
            runs(np.ones((size, 3), np.float32))
        assert len(made) == 4  # two pieces, two shapes

    def test_graphs_without_such_operators_are_one_session(self, made):
        runs = model.Model(sym.relu(self.x) + 1)
        for _ in range(3):
            runs(X)
        assert len(made) == 1

    def test_recurrent_states_take_their_size_from_the_inputs(self):
        node = partitioned(sym.var("a0") + sym.var("b0"), ["hidden", "state"])
        data = sym.FullyConnected(sym.var("data"), num_hidden=4, no_bias=True, name="i2h")
        symbol = sym.relu(node(hidden=data, state=sym.zeros((0, 4), name="begin"), name="net"))
        runs = model.Model(symbol, {"i2h_weight": W})
        for size in (1, 2, 1):
            np.testing.assert_allclose(runs(X[:size]), relu(X[:size] @ W.T), rtol=1e-6)
        assert symbol.infer_shape(data=(2, 3))[1] == [(2, 4)]


def test_libraries_operators_alone_need_no_session(made):
    np.testing.assert_allclose(sym.tp_scale(sym.var("x")).eval(x=X)[0], 2 * X)
    assert made == []
