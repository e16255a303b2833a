"""Graphs with operators of libraries that cannot run: one clear error each."""

from __future__ import annotations

import numpy as np
import pytest

from custom_graphs import W, X, inner_graph, partitioned
from passlib import model, sym
from passlib.errors import GraphError, OperatorError, UnsupportedError

pytestmark = pytest.mark.usefixtures("graph_operators")


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
        with pytest.raises(GraphError, match="no input 'z'"):
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
