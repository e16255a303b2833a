"""ONNX models that are given by their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib.errors import FormatError, UnsupportedError

onnx = pytest.importorskip("onnx", reason="needs the package onnx")
onnx_models = pytest.importorskip("onnx_models", reason="needs the package onnx")


@pytest.fixture
def message() -> Any:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 60] x) => (float[N, 60] y)'
        "{ y = MatMul(x, w) }"
    )
    weight = np.random.default_rng(1).standard_normal((60, 60)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


@pytest.mark.parametrize("kind", ["message", "bytes", "bytearray", "memoryview"])
def test_loads_and_saves_the_same(kind: str, message: Any, tmp_path: Path) -> None:
    data = message.SerializeToString()
    given = {"message": message, "bytearray": bytearray(data), "memoryview": memoryview(data)}
    model = passlib.load(given.get(kind, data))
    assert model.dialect == "onnx"
    (path,) = model.save(tmp_path / "again.onnx")
    assert onnx.load(path) == message
    assert message.SerializeToString() == data
    x = np.ones((2, 60), np.float32)
    np.testing.assert_allclose(model(x), x @ np.asarray(model.args["w"]), rtol=1e-4)


def test_refused(message: Any, tmp_path: Path) -> None:
    data = message.SerializeToString()
    onnx.save(message, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    external = (tmp_path / "m.onnx").read_bytes()
    for given, error, text in (
        (3, TypeError, "from a path, from bytes or from an onnx.ModelProto, not from int"),
        (data[:100], FormatError, "truncated"),
        (b"", FormatError, "the file is empty"),
        (external, UnsupportedError, "data in other files.*load it from its file"),
    ):
        with pytest.raises(error, match=text):
            passlib.load(given)
    with pytest.raises(UnsupportedError, match="models of MXNet are read from files only"):
        passlib.load(b"{}", "mxnet")
    with pytest.raises(UnsupportedError, match="no option 'epoch'"):
        passlib.load(data, epoch=1)
