"""Weights that do not fit a graph are refused where they are put in, in every family of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import passlib
from ark_files import FILES as ARK
from dlprim_files import COPIED
from nnvm_files import TVM_EXECUTOR, text_of
from passlib import GraphError, Model

NET = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3] x) => (float[n, 4] y)
<float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] b = {1, 2, 3, 4}>
{ t = MatMul(x, w) y = Add(t, b) }"""

WRONG = [
    ("w", (3, 5), "float32"),
    ("w", (2, 4), "float32"),
    ("w", (12,), "float32"),
    ("w", (3, 4, 1), "float32"),
    ("b", (3,), "float32"),
    ("w", (3, 4), "float64"),
]


def onnx_model(text: str = NET) -> Model:
    return passlib.load(parser.parse_model(text))


@pytest.mark.parametrize(("name", "shape", "dtype"), WRONG)
def test_weight_of_an_onnx_model(name: str, shape: tuple[int, ...], dtype: str) -> None:
    model = onnx_model()
    with pytest.raises(GraphError, match=rf"weights do not fit.*'{name}' is {dtype} \({shape[0]},"):
        Model(model.symbol, {**model.args, name: np.ones(shape, dtype)})


WEIGHT_AS_INPUT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 3] x, float[k, 4] w) => (float[n, 4] y) { y = MatMul(x, w) }"""


def test_weight_that_a_file_does_not_have() -> None:
    """The input of a model becomes a weight."""
    symbol = onnx_model(WEIGHT_AS_INPUT).symbol
    for put in (lambda weights: Model(symbol, weights), Model(symbol).with_weights):
        with pytest.raises(GraphError, match=r"weights do not fit.*MatMul"):
            put({"w": np.ones((5, 4), np.float32)})
        y = put({"w": np.ones((3, 4), np.float32)})(np.ones((2, 3), np.float32))
        np.testing.assert_array_equal(y.asnumpy(), np.full((2, 4), 3))


def test_weights_of_other_shapes_that_fit() -> None:
    """Width is a matter of the weights alone: ten features instead of four."""
    model = onnx_model(NET.replace("float[n, 4] y", "float[n, m] y"))
    wide = {"w": np.ones((3, 10), np.float32), "b": np.zeros(10, np.float32)}
    y = Model(model.symbol, wide)(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(y.asnumpy(), np.full((2, 10), 3))


def test_graph_that_is_unsound_by_itself() -> None:
    """It is reported when it is run: the weights are not to blame."""
    model = onnx_model(NET.replace("n, 3] x", "2, 3] x").replace("{ t", "{ s = MatMul(x, x) t"))
    assert len(Model(model.symbol, {**model.args, "b": np.ones(4, np.float32)}).args) == 2


def stated_model(family: str, folder: Path) -> tuple[Model, str]:
    """A model that states the shape of a variable, and the variable."""
    if family == "ark":
        model = passlib.load(ARK / "gen_py-quickstart_add_fp16.full.json")
    else:
        path = folder / "net.json"
        path.write_bytes(text_of(TVM_EXECUTOR))
        model = passlib.load(path)
    return model, model.inputs[0]


@pytest.mark.parametrize("family", ["ark", "nnvm"])
def test_weight_of_a_stated_shape(family: str, tmp_path: Path) -> None:
    model, name = stated_model(family, tmp_path)
    types = model.input_types[name]
    good: Any = np.ones(types.shape, types.dtype)
    assert Model(model.symbol, {name: good}).args[name].shape == types.shape
    bad = good[..., None]
    for put in (lambda weights: Model(model.symbol, weights), model.with_weights):
        with pytest.raises(GraphError, match=rf"do not fit.*'{name}' has the shape.*, 1\), the"):
            put({name: bad})


def test_weight_of_a_network() -> None:
    model = passlib.load(next(path for path in COPIED if path.stem == "onnx2dp_lenet"))
    name = next(iter(model.args))
    with pytest.raises(GraphError, match=rf"do not fit.*'{name}' must have shape"):
        Model(model.symbol, {**model.args, name: model.args[name][..., None]})


@pytest.mark.parametrize("name", ["onnx", "ark", "nnvm"])
def test_unknown_names(name: str, tmp_path: Path) -> None:
    model = onnx_model() if name == "onnx" else stated_model(name, tmp_path)[0]
    with pytest.raises(GraphError, match=r"1 of 1 weights belong to no variable.*other_weight"):
        Model(model.symbol, {"other_weight": np.ones(3, np.float32)})
    assert json.loads(model.symbol.tojson())
