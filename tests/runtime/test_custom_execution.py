"""Graphs with operators of libraries run: pieces, states, mutated inputs, storage, errors."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from custom_graphs import inner_graph, partitioned
from passlib import executor, model, nd, nn, sym
from passlib.errors import GraphError, OperatorError, UnsupportedError
from passlib.runtime import sessions

X = np.array([[1, -1, 2], [0.5, -2, 3]], np.float32)
W = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


@pytest.fixture(scope="module", autouse=True)
def _library(load_plugin):
    load_plugin("graph_operators")


@pytest.fixture
def made(monkeypatch):
    """Count the sessions that are compiled."""
    counted = []
    original = sessions.Session

    def compile_session(*args, **options):
        counted.append(args)
        return original(*args, **options)

    monkeypatch.setattr(sessions, "Session", compile_session)
    return counted


def relu(x):
    return np.maximum(x, 0)


def mixed():
    """Built-in, the library's, built-in."""
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
    """Where the library's operators stand: each expected value is NumPy's."""

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


class TestMutatedInputs:
    def symbol(self, **attrs):
        return sym.tp_accumulate(sym.var("x"), sym.var("total"), name="acc", **attrs)

    def test_executor_writes_to_the_callers_array(self):
        total = nd.array(10 * np.ones((2, 3), np.float32))
        bound = executor.bind(self.symbol(), None, {"x": X}, aux_states={"total": total})
        np.testing.assert_allclose(bound.forward()[0], 10 + X)
        np.testing.assert_allclose(total, 10 + X)
        np.testing.assert_allclose(bound.forward(is_train=True)[0], 10 + 2 * X)
        np.testing.assert_allclose(bound.aux_dict["total"], 10 + 2 * X)

    def test_model_keeps_the_new_state(self, made):
        total = np.zeros((2, 3), np.float32)
        acc = self.symbol()
        symbol = sym.relu(acc) + acc.get_internals()["total"]
        runs = model.Model(symbol, {}, {"total": total})
        for count in (1, 2, 3):
            np.testing.assert_allclose(runs(X), relu(count * X) + count * X)
        np.testing.assert_array_equal(total, 0)
        np.testing.assert_allclose(runs.aux["total"], 3 * X)
        assert len(made) == 1

    def test_block_keeps_the_new_state(self):
        net = nn.SymbolBlock(self.symbol(), sym.var("x"))
        net.initialize()
        net(nd.array(X))
        net.collect_params()["total"].set_data(nd.zeros((2, 3)))
        for count in (1, 2):
            np.testing.assert_allclose(net(nd.array(X)), count * X)
        np.testing.assert_allclose(net.collect_params()["total"].data(), 2 * X)

    def test_who_reads_before_and_after(self):
        total = sym.var("total")
        acc = sym.tp_accumulate(sym.var("x"), total)
        symbol = sym.Group([sym.exp(total), acc, total + 1, total])
        outputs = symbol.eval(x=np.ones(2, np.float32), total=np.ones(2, np.float32))
        for output, expected in zip(outputs, (np.e, 2, 3, 2), strict=True):
            np.testing.assert_allclose(output, expected)

    def test_two_writers(self):
        x, total = sym.var("x"), sym.var("total")
        first = sym.tp_accumulate(x, total)
        second = sym.tp_accumulate(sym.relu(first), total)
        array = np.zeros((2, 3), np.float32)
        (out,) = executor.bind(second, None, {"x": X}, aux_states=[array]).forward()
        np.testing.assert_allclose(out, X + relu(X))
        np.testing.assert_allclose(array, X + relu(X))

    def test_failing_leaves_arrays_as_they_were(self):
        x, total = sym.var("x"), sym.var("total")
        first = sym.tp_accumulate(x, total, name="first")
        second = sym.tp_accumulate(sym.relu(first), total, fail=1, name="second")
        array, given = np.ones((2, 3), np.float32), X.copy()
        bound = executor.bind(second, None, {"x": given}, aux_states={"total": array})
        with pytest.raises(OperatorError, match=r"(?s)tp_accumulate.*second.*told to fail"):
            bound.forward()
        np.testing.assert_array_equal(array, 1)
        np.testing.assert_array_equal(given, X)
        runs = model.Model(second, {}, {"total": array})
        with pytest.raises(OperatorError):
            runs(X)
        np.testing.assert_array_equal(runs.aux["total"], 1)


class TestStates:
    def test_one_for_each_node(self):
        x = sym.var("x")
        symbol = sym.tp_counter(sym.tp_counter(x)) + sym.tp_counter(x)
        bound = executor.bind(symbol, None, {"x": X})
        for count in (1, 2, 3):
            np.testing.assert_allclose(bound.forward()[0], 2 * X + 3 * count)

    def test_one_for_each_signature(self):
        runs = model.Model(sym.tp_counter(sym.var("x")))
        counts = [float(runs(np.zeros((size,), np.float32))[0]) for size in (1, 1, 2, 1, 2)]
        assert counts == [1, 2, 1, 3, 2]

    def test_each_executor_has_its_own(self):
        symbol = sym.tp_counter(sym.var("x"))
        for _ in range(2):
            np.testing.assert_allclose(executor.bind(symbol, None, {"x": X}).forward()[0], X + 1)

    def test_destroyed_with_the_session(self):
        def living():
            gc.collect()
            return int(sym.tp_living(sym.var("x")).eval(x=np.zeros(1, np.float32))[0][0])

        before = living()
        runs = model.Model(sym.tp_counter(sym.tp_counter(sym.var("x"))))
        for size in range(1, 30):
            runs(np.zeros(size, np.float32))
        during = living() - before
        assert 0 < during <= 16
        del runs
        assert living() == before

    def test_threads_share_one_in_turn(self):
        runs = model.Model(sym.relu(sym.tp_counter(sym.var("x"))))
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: float(runs(np.zeros(1, np.float32))[0]), range(40)))
        assert sorted(results) == list(range(1, 41))


class TestSubgraphs:
    a = np.array([0, 1], np.float32)
    b = np.array([1, 2], np.float32)
    expected = (np.log(np.exp(a) + b), np.exp(b))

    @pytest.mark.parametrize("extra", [None, 0, 1, 2])
    def test_values(self, extra):
        names = ["x", "y", *(f"z{i}" for i in range(extra or 0))]
        node = partitioned(inner_graph(), names, extra)
        symbol = sym.Group([sym.relu(node[0]), node[1]])
        arrays = {f"z{i}": np.array([10.0 * (i + 1)], np.float32) for i in range(extra or 0)}
        outputs = symbol.eval(x=self.a, y=self.b, **arrays)
        more = sum(float(array[0]) for array in arrays.values())
        for actual, expected in zip(outputs, self.expected, strict=True):
            np.testing.assert_allclose(actual, expected + more, rtol=1e-6)

    def test_same_numbers_as_the_graph_itself(self):
        inner = inner_graph()
        direct = inner.eval(a0=self.a, b0=self.b)
        through = partitioned(inner, ["x", "y"]).eval(x=self.a, y=self.b)
        for actual, expected in zip(through, direct, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)

    def test_through_a_file(self, tmp_path):
        symbol = partitioned(inner_graph(), ["x", "y"])
        symbol.save(tmp_path / "a-symbol.json")
        (out, _) = sym.load(tmp_path / "a-symbol.json").eval(x=self.a, y=self.b)
        np.testing.assert_allclose(out, self.expected[0], rtol=1e-6)

    def test_in_a_block(self):
        net = nn.SymbolBlock(
            partitioned(inner_graph(), ["x", "y"])[0], [sym.var("x"), sym.var("y")]
        )
        np.testing.assert_allclose(
            net(nd.array(self.a), nd.array(self.b)), self.expected[0], rtol=1e-6
        )

    def test_other_operators_inside(self):
        symbol = partitioned(sym.sin(sym.var("a0")), ["x"])
        with pytest.raises(OperatorError, match=r"(?s)_op0.*no such operator: sin"):
            symbol.eval(x=self.a)

    def test_input_that_is_stored_sparsely(self):
        rows = nd.array(np.array([[0, 0], [1, 2]], np.float32)).tostype("row_sparse")
        symbol = partitioned(sym.exp(sym.var("a0")), ["x"])
        np.testing.assert_allclose(symbol.eval(x=rows)[0], np.exp(rows.asnumpy()), rtol=1e-6)


class TestStorage:
    rows = np.array([[0, 0], [1, -2], [0, 0], [3, 4]], np.float32)

    def test_sparse_goes_through(self):
        x = sym.var("x")
        symbol = sym.tp_negate(sym.tp_negate(sym.tp_negate(x)))
        (out,) = symbol.eval(x=nd.array(self.rows).tostype("row_sparse"))
        assert out.stype == "row_sparse"
        np.testing.assert_array_equal(out.indices, [1, 3])
        np.testing.assert_array_equal(out.asnumpy(), -self.rows)
        (out,) = symbol.eval(x=self.rows)
        assert out.stype == "default"
        np.testing.assert_array_equal(out, -self.rows)

    def test_built_in_operators_get_it_dense(self):
        symbol = sym.exp(sym.tp_negate(sym.var("x")))
        (out,) = symbol.eval(x=nd.array(self.rows).tostype("row_sparse"))
        np.testing.assert_allclose(out, np.exp(-self.rows), rtol=1e-6)

    def test_operator_for_dense_arrays_refuses(self):
        symbol = sym.tp_scale(sym.tp_negate(sym.var("x")), name="s")
        with pytest.raises(OperatorError, match="tp_scale"):
            symbol.eval(x=nd.array(self.rows).tostype("row_sparse"))


class TestErrors:
    x = sym.var("x")

    @pytest.mark.parametrize(
        ("make", "arrays", "error", "message"),
        [
            (
                lambda x: sym.tp_product(x, sym.relu(sym.var("y")), name="p"),
                {"x": X, "y": X[:1]},
                OperatorError,
                r"(?s)tp_product.*'p'.*different shapes",
            ),
            (
                lambda x: sym.tp_linear(x, sym.var("w"), num_hidden=9, name="l"),
                {"x": X, "w": W},
                OperatorError,
                "tp_linear.*'l'",
            ),
            (
                lambda x: sym.tp_product(x, sym.var("y"), name="p"),
                {"x": X, "y": X.astype(np.float64)},
                OperatorError,
                "tp_product.*'p'",
            ),
        ],
    )
    def test_inputs_that_do_not_fit(self, make, arrays, error, message):
        with pytest.raises(error, match=message):
            make(self.x).eval(**arrays)

    def test_variable_without_a_value(self):
        with pytest.raises(GraphError, match=r"'p'.*'y' is neither.*no value was given for y"):
            model.Model(sym.tp_product(sym.var("y"), self.x, name="p"))()
        with pytest.raises(GraphError, match="no variable 'z'"):
            model.Model(sym.tp_scale(self.x)).run({"x": X, "z": X})

    def test_operator_of_nobody(self):
        text = sym.tp_scale(self.x).tojson().replace("tp_scale", "tp_nothing")
        with pytest.raises(UnsupportedError, match="tp_nothing"):
            sym.load_json(text).eval(x=X)

    def test_built_in_operator_without_lowering_in_a_piece(self):
        text = sym.tp_scale(sym.relu(self.x, name="python")).tojson().replace('"relu"', '"Custom"')
        with pytest.raises(UnsupportedError, match=r"node 'python' \(Custom\)"):
            sym.load_json(text).eval(x=X)

    def test_subgraph_operator_without_a_subgraph(self):
        text = sym.tp_scale(self.x, name="s").tojson().replace("tp_scale", "tp_subgraph")
        with pytest.raises(GraphError, match=r"node \'s\' .*the node has none"):
            sym.load_json(text).eval(x=X)

    def test_subgraph_with_other_inputs(self):
        symbol = partitioned(inner_graph(), ["x", "y", "z"])
        with pytest.raises(GraphError, match=r"_op0.*has 3 inputs, but its subgraph has 2"):
            symbol.eval(x=X, y=X, z=X)

    def test_not_for_onnx_files(self, tmp_path):
        with pytest.raises(UnsupportedError, match="tp_scale"):
            model.Model(sym.tp_scale(self.x)).to_onnx(tmp_path / "a.onnx", shapes={"x": (2, 3)})


def test_libraries_operators_alone_need_no_session(made):
    np.testing.assert_allclose(sym.tp_scale(sym.var("x")).eval(x=X)[0], 2 * X)
    assert made == []
