"""Nodes with subgraphs, and arrays stored sparsely, in graphs that run."""

from __future__ import annotations

import numpy as np
import pytest

from custom_graphs import inner_graph, partitioned
from passlib import nd, nn, sym
from passlib.errors import OperatorError

pytestmark = pytest.mark.usefixtures("graph_operators")


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
