"""Models written as ONNX files."""

from __future__ import annotations

import numpy as np
import pytest

from dense_layer import weights
from passlib import model, sym, workbench
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


@pytest.mark.parametrize("dialect", ["mxnet", "nnvm"])
def test_a_label_is_no_missing_shape(dialect, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    symbol = sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"))
    model.Model(symbol, weights()).save(tmp_path / "m")
    made = model.load(tmp_path / "m-symbol.json", dialect=dialect).with_weights(weights())
    with pytest.raises(GraphError, match="give the shapes of data as"):
        made.to_onnx(tmp_path / "m.onnx")
    with pytest.raises(GraphError, match="does not state the shapes of data;"):
        workbench.compare(made, made)


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


def _heads():
    data, label = sym.var("data"), sym.var("label")
    dense = sym.FullyConnected(data, num_hidden=3, name="fc")
    square = sym.reshape(dense, shape=(0, 3, 1, 1))
    loss = sym.SoftmaxOutput(dense, label, name="p")
    return {
        "SoftmaxOutput": (loss, []),
        "several axes": (sym.SoftmaxOutput(square, label, multi_output=True), []),
        "label of its own": (sym.SoftmaxOutput(dense), []),
        "old name": (sym.Softmax(dense, label), []),
        "linear": (sym.LinearRegressionOutput(dense, label), []),
        "logistic": (sym.LogisticRegressionOutput(dense, label), []),
        "absolute": (sym.MAERegressionOutput(dense, label), []),
        "SVM": (sym.SVMOutput(dense, label), []),
        "computed label": (sym.SoftmaxOutput(dense, label + 1), []),
        "reshaped label": (sym.SoftmaxOutput(dense, sym.reshape(label, shape=(-1,))), []),
        "sliced label": (
            sym.LinearRegressionOutput(
                dense, sym.slice_axis(sym.relu(label), axis=0, begin=0, end=1)
            ),
            [],
        ),
        "two heads": (sym.Group([loss, sym.SVMOutput(sym.relu(dense), label)]), []),
        "inner unread input": (sym.Group([loss, sym.relu(sym.var("more"))]), ["more"]),
        "no label": (sym.MakeLoss(sym.SoftmaxActivation(dense)), []),
        # Something else reads these.
        "loss": (sym.softmax_cross_entropy(dense, label), ["label"]),
        "other branch": (sym.Group([loss, sym.MakeLoss(label * 2)]), ["label"]),
        "output": (sym.Group([loss, label]), ["label"]),
    }


@pytest.mark.parametrize("dialect", ["mxnet", "nnvm"])
@pytest.mark.parametrize("rows", [2, None])
@pytest.mark.parametrize("head", _heads())
def test_inputs_that_only_training_reads_are_omitted(head, rows, dialect, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra run")
    graph, others = _heads()[head]
    labels = ["label", *others] if head == "inner unread input" else others
    shapes = {"data": (rows, 2), **dict.fromkeys(labels, (rows,))}
    model.Model(graph, weights()).save(tmp_path / "m")
    whole = model.load(tmp_path / "m-symbol.json", dialect=dialect)
    if dialect == "nnvm":
        whole = whole.with_weights(weights())
    whole.to_onnx(tmp_path / "m.onnx", shapes)
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["data", *others]
    # Both can be compared, in both directions.
    exported = model.load(tmp_path / "m.onnx")
    drawn = {"data": (2, 2), **dict.fromkeys(labels, (2,))}
    for pair in ((whole, exported), (exported, whole)):
        assert workbench.compare(*pair, n=1, shapes=drawn).equal
