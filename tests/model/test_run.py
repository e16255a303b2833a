"""Results of models."""

from __future__ import annotations

import numpy as np
import pytest

from dense_layer import X, Y, layer, weights
from passlib import model, nd, sym
from passlib.errors import GraphError
from recorded_models import MODELS, WITH_WEIGHTS, assert_close, recorded


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_agrees_with_mxnet(name):
    loaded = model.load(MODELS / name)
    inputs, outputs = recorded(name)
    results = loaded.run(inputs)
    assert list(results) == loaded.outputs
    for actual, expected in zip(results.values(), outputs, strict=True):
        assert isinstance(actual, nd.NDArray)
        assert_close(actual, expected)
    assert_close(loaded(*inputs.values()), outputs[0])


def test_batch_of_another_size(small):
    for size in (1, 5, 1):
        assert small(np.ones((size, 2), np.float32)).shape == (size, 3)


def test_sessions_are_reused(small, monkeypatch):
    from passlib.runtime import sessions

    made = []
    original = sessions.Session
    monkeypatch.setattr(sessions, "Session", lambda *a, **k: made.append(1) or original(*a, **k))
    for size in (2, 3, 2, 3, 2):
        small(np.ones((size, 2), np.float32))
    assert len(made) == 2


def test_lists_become_float32(small):
    np.testing.assert_allclose(small.run({"data": X.tolist()})["fc_output"], Y)


def test_weight_in_place_of_the_models(small):
    result = small.run({"data": X, "fc_bias": np.zeros(3, np.float32)})["fc_output"]
    np.testing.assert_allclose(result, X @ weights()["fc_weight"].T)
    np.testing.assert_allclose(small(X), Y)


def test_several_outputs():
    first = layer()
    data = first.get_internals()["data"]
    both = model.Model(sym.Group([first, data * 2]), weights())
    first, second = both(X)
    np.testing.assert_allclose(first, Y)
    np.testing.assert_allclose(second, 2 * X)
    assert list(both.run({"data": X})) == both.outputs


def test_outputs_of_one_name():
    data = sym.var("data")
    pair = [sym.relu(data, name="same"), sym.negative(data, name="same")]
    twice = model.Model(sym.Group(pair))
    np.testing.assert_array_equal(twice(X)[1], -X)
    with pytest.raises(GraphError, match="several outputs are named same_output"):
        twice.run({"data": X})


def test_label_may_be_left_out():
    output = sym.SoftmaxOutput(layer(), name="softmax")
    classifier = model.Model(output, weights())
    assert classifier.inputs == ["data", "softmax_label"]
    expected = np.exp(Y) / np.exp(Y).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classifier(X), expected, rtol=1e-5)


def test_sparse_weight():
    dense = weights()
    sparse = {**dense, "fc_weight": dense["fc_weight"].tostype("row_sparse")}
    np.testing.assert_allclose(model.Model(layer(), sparse)(X), Y)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({}, GraphError, "no value was given for data"),
        ({"data": X, "dota": X}, GraphError, "no input 'dota'; its inputs are data"),
        ({"data": X.astype(np.float64)}, GraphError, r"float64, and no weight is.*astype"),
        ({"data": np.ones((2, 5), np.float32)}, GraphError, "'fc'"),
    ],
)
def test_inputs_that_do_not_fit(small, inputs, error, message):
    with pytest.raises(error, match=message):
        small.run(inputs)


def test_too_many_inputs(small):
    with pytest.raises(TypeError, match="given 2 inputs, but has 1: data"):
        small(X, X)
