"""Operators of libraries that write to their inputs or have a state, in graphs."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from custom_graphs import X, relu
from passlib import executor, model, nd, nn, sym
from passlib.errors import OperatorError

pytestmark = pytest.mark.usefixtures("graph_operators")


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
