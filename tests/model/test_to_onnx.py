"""Models written as ONNX files."""

from __future__ import annotations

import numpy as np
import pytest

from dense_layer import weights
from passlib import model, sym
from passlib.errors import GraphError
from recorded_models import MODELS, WITH_WEIGHTS, assert_close, recorded


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_runs_elsewhere(name, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra run")
    checker = pytest.importorskip("onnx.checker", reason="needs the extra run")
    inputs, outputs = recorded(name)
    path = tmp_path / "model.onnx"
    shapes = {key: value.shape for key, value in inputs.items()}
    model.load(MODELS / name).to_onnx(path, shapes)
    checker.check_model(str(path), full_check=True)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert_close(session.run(None, inputs)[0], outputs[0])


def test_open_size(small, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra run")
    small.to_onnx(tmp_path / "m.onnx", {"data": (None, 2)})
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    for size in (1, 4):
        data = np.ones((size, 2), np.float32)
        np.testing.assert_allclose(session.run(None, {"data": data})[0], small(data))


def test_shape_of_the_variable(tmp_path):
    data = sym.var("data", shape=(2, 2))
    made = model.Model(sym.FullyConnected(data, num_hidden=3, name="fc"), weights())
    made.to_onnx(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 0


def test_shape_is_missing(tmp_path):
    loaded = model.load(MODELS / "resnet_v1_small")
    with pytest.raises(GraphError, match=r"give the shapes of data as to_onnx\(path"):
        loaded.to_onnx(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_unknown_input(small, tmp_path):
    with pytest.raises(GraphError, match="no input 'dota'; its inputs are data"):
        small.to_onnx(tmp_path / "m.onnx", {"dota": (1, 2)})


@pytest.mark.parametrize(
    ("output", "operators"),
    [("ln_output", ["LayerNormalization"]), ("ln_std", ["LayerNormalization", "Reciprocal"])],
)
def test_only_what_the_outputs_need_is_exported(output, operators, tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    graph = sym.LayerNorm(sym.var("data"), name="ln", output_mean_var=True)
    arrays = {"ln_gamma": np.ones(4, np.float32), "ln_beta": np.zeros(4, np.float32)}
    chosen = model.Model(graph.get_internals()[output], arrays)
    chosen.to_onnx(tmp_path / "m.onnx", {"data": (2, 4)})
    assert [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node] == operators
