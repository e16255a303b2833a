"""Inputs and outputs of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from dense_layer import X, layer
from passlib import gluon, nd, nn, sym


def test_names_of_gluon():
    from passlib.gluon import nn as of_gluon

    assert of_gluon is nn
    assert gluon.SymbolBlock is nn.SymbolBlock


def test_outputs_nest_as_given():
    data = sym.var("data")
    cases = [
        (data * 2, "a"),
        ([data * 2], "a"),
        ([data * 2, data * 3], ["a", "b"]),
        ([data * 2, [data * 3, data * 4]], ["a", ["b", "c"]]),
        (sym.Group([data * 2, data * 3]), ["a", "b"]),
        ([sym.split(data, num_outputs=2, axis=0), data * 2], [["h", "k"], "a"]),
    ]
    values = {"a": 2 * X, "b": 3 * X, "c": 4 * X, "h": X[:1], "k": X[1:]}

    def compare(actual, expected):
        if isinstance(expected, str):
            assert isinstance(actual, nd.NDArray)
            np.testing.assert_array_equal(actual, values[expected])
            return
        assert isinstance(actual, list)
        for part, name in zip(actual, expected, strict=True):
            compare(part, name)

    for outputs, expected in cases:
        compare(nn.SymbolBlock(outputs, data)(X), expected)


def test_nested_inputs():
    a, b, c = (sym.var(name) for name in "abc")
    made = nn.SymbolBlock(a - b * c, [a, [b, c]])
    np.testing.assert_array_equal(made(X, [X + 1, X + 2]), X - (X + 1) * (X + 2))
    with pytest.raises(ValueError, match="given 3 inputs, nested in another way; it has 3"):
        made(X, X, X)


def test_symbols_give_symbols(block):
    out = block(sym.relu(sym.var("x")))
    assert out.list_arguments() == ["x", "fc_weight", "fc_bias"]
    assert nn.SymbolBlock(out, sym.var("x"), block.params)(X).shape == (2, 3)


def test_unused_input_is_said():
    with pytest.warns(UserWarning, match="do not use the input other"):
        made = nn.SymbolBlock(layer(), [sym.var("data"), sym.var("other")])
    made.initialize("ones")
    assert made(X, X).shape == (2, 3)


@pytest.mark.parametrize(
    ("outputs", "inputs", "error", "message"),
    [
        (layer(), layer(), ValueError, "'fc' is the output of FullyConnected"),
        (
            layer(),
            [sym.var("data")] * 2,
            ValueError,
            "two inputs of the block are named 'data'",
        ),
        (X, sym.var("data"), TypeError, "output must be a Symbol, not ndarray"),
        (layer(), "data", TypeError, "input must be a Symbol, not str"),
        (
            sym.dot(sym.var("data"), sym.var("w", stype="row_sparse")),
            sym.var("data"),
            ValueError,
            "'w' is row_sparse",
        ),
    ],
)
def test_refused(outputs, inputs, error, message):
    with pytest.raises(error, match=message):
        nn.SymbolBlock(outputs, inputs)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, X), ValueError, "given 2 inputs; it has 1: data"),
        ((X.tolist(),), ValueError, "given 4 inputs"),
        ((1.5,), TypeError, "input 'data' is of type float"),
        ((None,), TypeError, "input 'data' is of type NoneType"),
    ],
)
def test_arguments_that_do_not_fit(block, arguments, error, message):
    with pytest.raises(error, match=message):
        block(*arguments)


def test_symbols_and_arrays_mixed():
    a, b = sym.var("a"), sym.var("b")
    with pytest.raises(TypeError, match="not with both"):
        nn.SymbolBlock(a + b, [a, b])(X, b)


def test_repr(block):
    assert repr(block) == "SymbolBlock(data -> fc_output; 4 nodes, 2 parameters)"
