"""Graphs of other dialects: no method or operator of MXNet is for them."""

from __future__ import annotations

import copy
import operator
import pickle
from pathlib import Path

import numpy as np
import pytest

import passlib
from dense_layer import layer
from passlib.errors import UnsupportedError
from passlib.model import Model

onnx_models = pytest.importorskip("onnx_models", reason="needs the package onnx")

ONE = onnx_models.HEAD + "(float[3] x) => (float[3] y) { c1 = Relu(x)\n y = Neg(c1) }"


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return passlib.load(onnx_models.save(ONE, tmp_path / "m.onnx"))


@pytest.mark.parametrize("sign", [operator.eq, operator.ne])
def test_comparison_is_for_mxnet(model: Model, sign) -> None:
    ours, theirs = layer(), model.symbol
    for pair in ((theirs, theirs), (ours, theirs), (theirs, ours), (theirs, 1), (1, theirs)):
        with pytest.raises(TypeError, match=r"of 'onnx'|and 'onnx'") as caught:
            sign(*pair)
        assert "first.graph.equals(second.graph)" in str(caught.value)
    assert sign(ours, ours.get_internals()["fc_output"]).list_outputs()


@pytest.mark.parametrize("sign", [operator.add, operator.mul, operator.lt, operator.pow])
def test_arithmetic_is_for_mxnet(model: Model, sign) -> None:
    for other in (model.symbol, 2):
        with pytest.raises(TypeError, match="'ModelGraph'"):
            sign(model.symbol, other)
    for pair in ((model.symbol, layer()), (layer(), model.symbol)):
        with pytest.raises(TypeError, match="of 'onnx'"):
            sign(*pair)
    with pytest.raises(TypeError, match="'ModelGraph'"):
        operator.neg(model.symbol)


def test_operators_are_for_mxnet(model: Model) -> None:
    with pytest.raises(UnsupportedError, match=r"'relu\d+'.*dialect 'onnx'.*changed by passes"):
        passlib.sym.relu(model.symbol)


def test_model_takes_the_dialect_of_its_symbol(model: Model, tmp_path: Path) -> None:
    again = Model(model.symbol, model.args, model.aux)
    assert again.dialect == "onnx"
    (path,) = again.save(tmp_path / "again.onnx")
    assert Path(path).read_bytes() == (tmp_path / "m.onnx").read_bytes()
    x = np.array([-1, 0, 2], np.float32)
    np.testing.assert_array_equal(passlib.load(path)(x), [0, 0, -2])
    again.to_onnx(tmp_path / "lowered.onnx")
    with pytest.raises(UnsupportedError, match=r"dialect 'onnx', so .* be of 'mxnet'"):
        Model(model.symbol, {}, {}, "mxnet")


def test_groups_are_of_one_model(model: Model, tmp_path: Path) -> None:
    inside = model.symbol.get_internals()
    group = passlib.sym.Group([inside["y"], inside["c1"]])
    assert Model(group).dialect == "onnx"
    assert group.list_outputs() == ["y", "c1"]
    x = np.array([-1, 0, 2], np.float32)
    np.testing.assert_array_equal(Model(group).run({"x": x})["c1"], [0, 0, 2])
    other = passlib.load(onnx_models.save(ONE.replace("Neg", "Exp"), tmp_path / "other.onnx"))
    for pair in ((model.symbol, layer()), (layer(), model.symbol), (model.symbol, other.symbol)):
        with pytest.raises(UnsupportedError, match=r"Group .* 'onnx' .*from another model"):
            passlib.sym.Group(pair)


def test_composition_is_for_mxnet(model: Model) -> None:
    relu = passlib.sym.relu(passlib.sym.var("x"))
    with pytest.raises(UnsupportedError, match="'onnx' cannot be composed"):
        relu(x=model.symbol)
    with pytest.raises(TypeError, match="not callable"):
        model.symbol(x=relu)


MXNETS = "relu bind simple_bind eval __call__ __add__ asnumpy handle of_json backward"


def test_the_graph_has_what_every_dialect_has(model: Model, tmp_path: Path) -> None:
    graph = model.symbol
    assert type(graph) is passlib.model.ModelGraph
    assert not isinstance(graph, passlib.Symbol)
    assert isinstance(layer(), passlib.model.ModelGraph)
    assert [name for name in MXNETS.split() if hasattr(graph, name)] == []
    assert repr(graph) == "<ModelGraph Neg_1: 3 nodes, 1 output>"
    assert "<table" in graph._repr_html_()
    assert graph.list_arguments() == ["x"]
    assert graph.list_inputs() == ["x"]
    assert graph.list_outputs() == ["y"]
    assert graph.list_auxiliary_states() == []
    assert graph.infer_shape() == ([(3,)], [(3,)], [])
    assert graph.infer_shape_partial(x=(3,))[1] == [(3,)]
    assert graph.infer_type() == ([np.float32], [np.float32], [])
    assert graph.infer_type_partial()[1] == [np.float32]
    assert graph.get_internals().list_outputs() == ["x", "c1", "y"]
    assert graph.get_internals()["c1"].name == graph.get_children().name
    assert [part.list_outputs() for part in graph.get_internals()[:2]] == [["x"], ["c1"]]
    assert graph.attr_dict() == {node.name: node.attrs for node in graph.nodes() if node.attrs}
    assert graph.attr("domain") == graph.list_attr().get("domain")
    assert "Op:Neg" in graph.debug_str()
    assert copy.copy(graph) is copy.deepcopy(graph) is graph
    graph.save(tmp_path / "graph.json")
    assert (tmp_path / "graph.json").read_text("utf-8") == graph.tojson()
    again = pickle.loads(pickle.dumps(graph))
    assert type(again) is type(graph)
    assert again.tojson() == graph.tojson()
    changed = graph.optimize_for("removeNoOps")
    assert type(changed) is type(graph)
    assert Model(changed).dialect == "onnx"


def test_what_takes_graphs_of_every_dialect(
    model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.array([-1, 0, 2], np.float32)
    block = passlib.nn.SymbolBlock(model.symbol, [passlib.sym.var("x")])
    np.testing.assert_array_equal(block(passlib.nd.array(x)).asnumpy(), [0, 0, -2])
    with pytest.raises(UnsupportedError, match="cannot be composed"):
        block(passlib.sym.var("x"))
    passlib.viz.print_summary(model.symbol)
    assert "Neg" in capsys.readouterr().out
    executor = passlib.executor.bind(model.symbol, passlib.cpu(), {"x": passlib.nd.array(x)})
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), [0, 0, -2])
