"""Models with other values of some weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_models
import passlib
from passlib.errors import GraphError

X = np.ones((2, 4), np.float32)
W = np.array([5, 6, 7, 8], np.float32)


def onnx_model() -> passlib.Model:
    return passlib.load(onnx.parser.parse_model(onnx_models.CHAIN))


def mxnet_model() -> passlib.Model:
    x = passlib.sym.Variable("x")
    normal = passlib.sym.BatchNorm(x, name="n", fix_gamma=False)
    vectors = {name: passlib.nd.ones((4,)) for name in ("n_gamma", "n_beta")}
    states = {"n_moving_mean": passlib.nd.zeros((4,)), "n_moving_var": passlib.nd.ones((4,))}
    return passlib.Model(normal, vectors, states)


def test_new_values_are_in_the_new_model_only(tmp_path: Path) -> None:
    model = onnx_model()
    other = model.with_weights({"w": W})
    np.testing.assert_array_equal(other.run({"x": X})["y"].asnumpy(), 1 + np.tile(W, (2, 1)))
    np.testing.assert_array_equal(model.run({"x": X})["y"].asnumpy()[0], [2, 3, 4, 5])
    assert other.args["shape"] is model.args["shape"]
    other.save(tmp_path / "a.onnx", durable=False)
    again = passlib.load(tmp_path / "a.onnx")
    np.testing.assert_array_equal(again.args["w"].asnumpy(), W)


def test_states_are_given_apart() -> None:
    model = mxnet_model()
    other = model.with_weights(aux={"n_moving_mean": passlib.nd.array([1, 1, 1, 1])})
    for each, expected in ((model, 2), (other, 1)):
        np.testing.assert_allclose(each(X).asnumpy(), np.full((2, 4), expected), rtol=1e-3)


def test_a_weight_that_was_missing() -> None:
    x = passlib.sym.Variable("x")
    model = passlib.Model(x * passlib.sym.Variable("w"))
    assert model.with_weights({"w": np.full((2, 4), 3, np.float32)})(X).asnumpy()[0, 0] == 3


CASES: dict[str, tuple[Callable[[], passlib.Model], Any, Any, type[Exception], str]] = {
    "no such variable": (onnx_model, {"v": W}, None, GraphError, "1 of 3 weights .* v"),
    "another shape": (onnx_model, {"w": W[:2]}, None, GraphError, r"'w' has shape \(2,\)"),
    "another type": (onnx_model, {"w": W.astype("f8")}, None, TypeError, "astype..float32"),
    "no array": (onnx_model, {"w": [1.0]}, None, TypeError, "'w' is not an array"),
    "a name that is no text": (onnx_model, {3: W}, None, TypeError, "args has 3, but must have"),
    "no mapping": (onnx_model, [W], None, TypeError, "dictionary"),
    "a state among the weights": (
        mxnet_model, {"n_moving_var": W}, None, GraphError, "is one of aux",
    ),
    "a weight among the states": (mxnet_model, None, {"n_gamma": W}, GraphError, "is one of args"),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_does_not_fit_is_refused(what: str) -> None:
    make, args, aux, kind, message = CASES[what]
    with pytest.raises(kind, match=message):
        make().with_weights(args, aux)
