"""ONNX models are run and exported, their sizes and types checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_models
import passlib
from onnx_models import HEAD, TEXTS, X
from passlib.errors import GraphError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


def test_opaque_constants_are_exported(tmp_path: Path) -> None:
    text = (
        HEAD
        + """(float[2, 4] x) => (float[2, 4] y) {
        s = Constant <value_strings = ["a", "b"]> ()
        n = StringNormalizer <case_change_action = "UPPER"> (s)
        y = Relu(x)
    }"""
    )
    source = onnx_models.save(text, tmp_path / "a.onnx")
    passlib.convert(source, tmp_path / "b.onnx")
    assert [value.name for value in onnx.load(tmp_path / "b.onnx").graph.input] == ["x"]


REFUSED = {
    "complex numbers": (
        "g (complex64[2] x) => (complex64[2] y) { y = Identity(x) }",
        "input 'x' of the model has elements of ONNX's type 14",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_models_that_are_not_run(what: str, tmp_path: Path) -> None:
    text, message = REFUSED[what]
    source = onnx_models.save(f'<ir_version: 8, opset_import: ["" : 17]> {text}', tmp_path / "a")
    with pytest.raises(UnsupportedError, match=message):
        passlib.load(source).run({"x": np.zeros(2, np.float32)})


def test_training_is_refused(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    lower = passlib.dialects.find("onnx").lower
    with pytest.raises(UnsupportedError, match="for training"):
        lower(model.symbol, {}, model.args, train=True)


def test_sizes_that_contradict_the_file(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    with pytest.raises(GraphError, match=r"'x' has shape \(2, 5\), the model wants .*4"):
        model.run({"x": np.zeros((2, 5), np.float32)})


def test_weights_that_are_fed_take_the_place_of_the_files(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    weights = np.full(4, 2, np.float32)
    outputs = model.run({"x": X, "w": weights})
    np.testing.assert_array_equal(outputs["y"].asnumpy(), np.maximum(X, 0) + weights)


def test_to_onnx_fixes_open_sizes(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    model.to_onnx(tmp_path / "b.onnx", shapes={"x": (5, 4)})
    dims = onnx.load(tmp_path / "b.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [5, 4]
    model.to_onnx(tmp_path / "c.onnx")
    assert onnx.load(tmp_path / "c.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param


@pytest.mark.parametrize("name", TEXTS)
def test_passes_see_shapes(
    name: str, tmp_path: Path, load_plugin: Loader, capsys: pytest.CaptureFixture[str]
) -> None:
    model = passlib.load(onnx_models.save(TEXTS[name], tmp_path / "a.onnx"))
    model.optimize_for("showJson", shape_dict={"x": X.shape if name != "loop" else (3,)})
    shown = capsys.readouterr().out
    assert '"__ext_shape__":' in shown
    assert ("[[2,4]]" if name != "loop" else "[[3]]") in shown.replace(" ", "")
    assert "__ext_shape__" not in model.symbol.tojson()
