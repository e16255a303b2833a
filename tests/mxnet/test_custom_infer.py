"""Shapes and types of graphs with operators of libraries."""

from __future__ import annotations

import numpy as np
import pytest

from custom_graphs import inner_graph, partitioned
from passlib import sym
from passlib.dialects.inference import infer
from passlib.errors import GraphError, OperatorError, UnsupportedError
from steps import counted_steps


@pytest.fixture(scope="module", autouse=True)
def _library(load_plugin):
    load_plugin("graph_operators")


X, Y = sym.var("x"), sym.var("y")
F64 = np.dtype(np.float64)


def linear(data):
    return sym.tp_linear(data, sym.var("w"), num_hidden=4, name="l")


@pytest.mark.parametrize(
    ("make", "given", "expected"),
    [
        (lambda: linear(X), {"x": (2, 3)}, ([(2, 3), (4, 3)], [(2, 4)], [])),
        (
            lambda: sym.FullyConnected(sym.relu(linear(X)), num_hidden=5, name="fc"),
            {"x": (2, 3)},
            ([(2, 3), (4, 3), (5, 4), (5,)], [(2, 5)], []),
        ),
        (
            lambda: sym.tp_halves(sym.Convolution(X, num_filter=8, kernel=(3, 3), name="c")),
            {"x": (1, 3, 8, 8)},
            ([(1, 3, 8, 8), (8, 3, 3, 3), (8,)], [(1, 8, 6, 6)] * 2, []),
        ),
        # Backwards: from one input of an operator to the other.
        (lambda: sym.tp_product(X, Y), {"y": (2, 3)}, ([(2, 3), (2, 3)], [(2, 3)], [])),
        (lambda: sym.tp_product(sym.relu(X), Y), {"y": (2, 3)}, ([(2, 3), (2, 3)], [(2, 3)], [])),
        (
            lambda: sym.tp_accumulate(X, sym.var("total")),
            {"x": (2,)},
            ([(2,)], [(2,)], [(2,)]),
        ),
        (
            lambda: partitioned(inner_graph(), ["x", "y"]),
            {"x": (2, 3)},
            ([(2, 3), (2, 3)], [(2, 3), (2, 3)], []),
        ),
        (
            lambda: sym.relu(partitioned(inner_graph(), ["x", "y", "z"], 1)[0]),
            {"x": (2, 3), "z": (1,)},
            ([(2, 3), (2, 3), (1,)], [(2, 3)], []),
        ),
    ],
)
def test_shapes(make, given, expected):
    assert make().infer_shape(**given) == expected


def test_extra_input_does_not_follow_from_the_others():
    symbol = partitioned(inner_graph(), ["x", "y", "z"], 1)
    assert symbol.infer_shape_partial(x=(2, 3))[0] == [(2, 3), (2, 3), ()]
    with pytest.warns(UserWarning, match="z"):
        assert symbol.infer_shape(x=(2, 3)) == (None, None, None)


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: linear(X), {}),
        (lambda: linear(X), {"w": (4, 3)}),
        (lambda: sym.exp(sym.tp_scale(X)), {}),
        (lambda: partitioned(inner_graph(), ["x", "y"]), {}),
    ],
)
def test_what_is_unknown_stays_unknown(make, given):
    _, outputs, _ = make().infer_shape_partial(**given)
    assert set(outputs) == {()}


def test_what_an_operator_says_of_unknown_inputs_is_repeated():
    symbol = sym.tp_accumulate(sym.tp_linear(X, sym.var("w"), num_hidden=4, name="l"), sym.var("t"))
    with pytest.warns(UserWarning, match=r"(?s)cannot be inferred: .*node 'l'.*be a matrix"):
        assert symbol.infer_shape(w=(4, 3)) == (None, None, None)
    with pytest.raises(OperatorError, match="data must be a matrix"):
        symbol.infer_shape(x=(2, 3, 4), w=(4, 3))


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: linear(X), {"x": (2, 3), "w": (9, 9)}),
        (lambda: linear(sym.relu(X)), {"x": (2, 3), "w": (9, 9)}),
        (lambda: sym.tp_product(X, Y), {"x": (2,), "y": (3,)}),
        (lambda: linear(X), {"x": (2, 3, 4), "w": (4, 3)}),
        (lambda: partitioned(inner_graph(), ["x", "y"]), {"x": (2,), "y": (3,)}),
    ],
)
def test_contradictions(make, given):
    with pytest.raises((GraphError, OperatorError), match=r"node '(l|_op0|tp_product\d+)'"):
        make().infer_shape(**given)


@pytest.mark.parametrize(
    ("make", "given", "expected"),
    [
        (lambda: linear(X), {"x": "float64"}, [np.float64] * 2),
        (lambda: sym.tp_product(X, sym.relu(Y)), {"y": "float64"}, [np.float64] * 2),
        (lambda: partitioned(inner_graph(), ["x", "y"]), {"x": "float64"}, [np.float64] * 2),
        (lambda: partitioned(inner_graph(), ["x", "y", "z"], 1), {"x": "float64"}, None),
    ],
)
def test_types(make, given, expected):
    symbol = make()
    if expected is None:
        with pytest.warns(UserWarning, match="z"):
            assert symbol.infer_type(**given) == (None, None, None)
        return
    arguments, outputs, _ = symbol.infer_type(**given)
    assert arguments == expected
    assert set(outputs) == {np.float64}


def test_every_node_is_known():
    symbol = sym.exp(sym.tp_halves(linear(sym.relu(X)), name="h")[1], name="e")
    found = infer(symbol, {"x": (2, 3)}, {}, default_dtype=np.dtype(np.float32)).by_name()
    assert [spec.shape for spec in found["h"]] == [(2, 4), (2, 4)]
    assert found["e"][0].shape == (2, 4)


def test_weights_nobody_said_anything_of():
    found = infer(linear(X), {"x": (2, 3)}, {"x": F64}).by_name()
    assert found["w"][0] == (F64, (4, 3))


def test_subgraphs_in_subgraphs():
    symbol = inner_graph()
    for _ in range(4):
        symbol = partitioned(symbol, ["x", "y"])
    assert symbol.infer_shape(x=(2,))[1] == [(2,), (2,)]
    for _ in range(20):
        symbol = partitioned(symbol, ["x", "y"])
    assert symbol.infer_shape_partial(x=(2,))[1] == [(), ()]
    with pytest.raises(UnsupportedError, match="more than 8 deep"):
        symbol.eval(x=np.ones(2, np.float32), y=np.ones(2, np.float32))


def test_takes_linear_time():
    def steps_of(count):
        symbol = X
        for i in range(count):
            symbol = (sym.tp_scale if i % 2 else sym.relu)(symbol)
        found, steps = counted_steps(lambda: symbol.infer_shape(x=(2, 3)))
        assert found[1] == [(2, 3)]
        return steps

    steps_of(2)
    assert steps_of(800) < 5 * steps_of(200)
