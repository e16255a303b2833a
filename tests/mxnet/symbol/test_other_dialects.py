"""Symbols of other dialects: no operator of MXNet is applied to them."""

from __future__ import annotations

import operator
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
    for other in (model.symbol, 2, layer()):
        with pytest.raises(TypeError, match="'onnx'"):
            sign(model.symbol, other)
    with pytest.raises(TypeError, match="'onnx'"):
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
    for outer, inner in ((model.symbol, relu), (relu, model.symbol), (model.symbol, model.symbol)):
        with pytest.raises(UnsupportedError, match="'onnx' cannot be composed"):
            outer(x=inner)
