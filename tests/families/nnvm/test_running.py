"""Models of NNVM and early MXNet as a whole: run, exported, and their declared types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from nnvm_cases import (
    Array,
    P,
    Q,
    conv2d,
    real,
)
from nnvm_files import GOLDEN, NNVM_CORE, TVM_EXECUTOR, text_of
from passlib.errors import UnsupportedError

pytest.importorskip("onnxruntime")


def test_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    graph = json.loads(text_of(NNVM_CORE))
    graph["nodes"][3].update(op="dropout")
    path.write_bytes(text_of(graph))
    model = passlib.model.load(path, dialect="nnvm")
    feeds = {"data": real(1, 3, 5, 5), "w": real(2, 3, 3, 3)}
    model.run(feeds)
    with pytest.raises(UnsupportedError, match=r"relu.*inference"):
        model.run(feeds, train=True)


@pytest.mark.parametrize("dialect", ["nnvm", "mxnet"])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".golden.json"))
def test_outputs_that_mxnet_computed(path: Path, dialect: str) -> None:
    golden = json.loads(path.read_bytes())
    graph = path.with_name(path.name.replace(".golden.json", ".json"))
    model = passlib.model.load(graph, dialect=dialect)

    def array(value: dict[str, Any]) -> Array:
        return np.array(value["data"], np.float32).reshape(value["shape"])

    feeds = {
        name: array(value) for kind in ("inputs", "aux") for name, value in golden[kind].items()
    }
    outputs = model.run(feeds)
    assert list(outputs) == list(golden["outputs"])
    for name, value in golden["outputs"].items():
        np.testing.assert_allclose(outputs[name], array(value), rtol=1e-4, atol=1e-5)


def test_a_model_of_nnvm_runs_and_is_exported(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(NNVM_CORE))
    model = passlib.model.load(path, dialect="nnvm")
    data, weight = real(1, 3, 5, 5), real(2, 3, 3, 3)
    total, relu = model(data, weight)
    expected = np.maximum(conv2d(data, weight), 0)
    np.testing.assert_allclose(relu, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(total, expected.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
    model.to_onnx(tmp_path / "m.onnx", {"data": data.shape, "w": weight.shape})
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


def test_inputs_have_the_types_that_an_executor_file_lists(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(TVM_EXECUTOR))
    data = passlib.dialects.find("nnvm").load(path)
    types = passlib.dialects.find("nnvm").input_types(data)
    assert {name: (t.dtype, t.shape) for name, t in types.items()} == {
        "A": (np.float32, (2, 3)),
        "B": (np.float32, (2, 3)),
    }
    model = passlib.model.load(path, dialect="nnvm")
    with pytest.raises(UnsupportedError, match=r"'add' \(tvm_op\).*fused_add"):
        model.run({"A": P, "B": Q})
