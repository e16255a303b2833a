"""Blocks and parameters read from files and written."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import passlib
from dense_layer import BIAS, WEIGHT, X, Y, layer
from passlib import nd, nn, sym
from passlib.errors import FormatError, GraphError, PasslibError, UnsupportedError
from recorded_models import MODELS, WITH_WEIGHTS, assert_close, recorded


def test_save_and_load(block, tmp_path):
    block.params.save(tmp_path / "x.params")
    assert list(nd.load(tmp_path / "x.params")) == ["fc_weight", "fc_bias"]
    other = nn.SymbolBlock(layer(), sym.var("data"))
    other.params.load(tmp_path / "x.params")
    np.testing.assert_allclose(other(X), Y)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"fc_weight": WEIGHT}, "'fc_bias' is missing; the file has 'fc_weight'"),
        ({"fc_weight": WEIGHT, "fc_bias": BIAS, "b": BIAS}, "'b' is not a parameter"),
        ({"fc_weight": WEIGHT.T, "fc_bias": BIAS}, r"'fc_weight' has shape \(3, 2\)"),
        ({"fc_weight": WEIGHT, "fc_bias": BIAS[:, None]}, r"'fc_bias' has shape \(3,\)"),
        ({"fc_weight": WEIGHT, "fc_bias": BIAS.astype(int)}, "'fc_bias' is float32, not int64"),
        ({"fc_bias": BIAS, "arg:fc_bias": BIAS}, "'fc_bias' is in the file twice"),
    ],
)
def test_files_that_do_not_fit_change_nothing(block, content, message, tmp_path):
    nd.save(tmp_path / "x.params", {name: 0 * array for name, array in content.items()})
    with pytest.raises(FormatError, match=rf"x\.params: .*{message}"):
        block.params.load(tmp_path / "x.params")
    np.testing.assert_allclose(block(X), Y)


def test_missing_and_extra_allowed(block, tmp_path):
    nd.save(tmp_path / "x.params", {"arg:fc_bias": 0 * BIAS, "b": BIAS})
    block.params.load(tmp_path / "x.params", allow_missing=True, ignore_extra=True)
    np.testing.assert_allclose(block(X), Y - BIAS)


@pytest.mark.parametrize(("source", "dtype"), [("current", "float32"), ("saved", "float64")])
def test_cast_while_loading(block, source, dtype, tmp_path):
    content = {"fc_weight": WEIGHT.astype("float64"), "fc_bias": BIAS.astype("float64")}
    nd.save(tmp_path / "x.params", content)
    block.params.load(tmp_path / "x.params", cast_dtype=True, dtype_source=source)
    assert {p.dtype.name for p in block.params.values()} == {dtype}


def test_save_without_values(tmp_path):
    with pytest.raises(PasslibError, match="'fc_weight' has no values"):
        nn.SymbolBlock(layer(), sym.var("data")).params.save(tmp_path / "x.params")


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_imports_agrees_with_mxnet(name, tmp_path):
    symbol_file, param_file = f"{name}-symbol.json", f"{name}-0000.params"
    made = nn.SymbolBlock.imports(MODELS / symbol_file, ["data"], MODELS / param_file)
    inputs, outputs = recorded(name)
    assert_close(made(inputs["data"]), outputs[0])
    made.hybridize(static_alloc=True, static_shape=True)
    written = made.export(tmp_path / "copy", epoch=3)
    assert [Path(path).name for path in written] == ["copy-symbol.json", "copy-0003.params"]
    for path, original in zip(written, (symbol_file, param_file), strict=True):
        assert Path(path).read_bytes() == (MODELS / original).read_bytes()


def test_imports_without_parameters():
    made = nn.SymbolBlock.imports(MODELS / "resnet_v1_small-symbol.json", "data")
    made.initialize(seed=0)
    inputs, outputs = recorded("resnet_v1_small")
    assert made(inputs["data"]).shape == outputs[0].shape


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ("dota", GraphError, r"lstm_lm-symbol\.json: the symbol has no variable 'dota'.*data"),
        ([], FormatError, r"'data' is missing.*or name it as an input if it is one"),
    ],
)
def test_imports_with_wrong_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        nn.SymbolBlock.imports(
            MODELS / "lstm_lm-symbol.json", inputs, MODELS / "lstm_lm-0000.params"
        )


def test_imports_allowing_missing(tmp_path):
    layer().save(tmp_path / "x-symbol.json")
    nd.save(tmp_path / "x.params", {"arg:fc_weight": WEIGHT})
    files = (tmp_path / "x-symbol.json", "data", tmp_path / "x.params")
    made = nn.SymbolBlock.imports(*files, allow_missing=True)
    with pytest.raises(PasslibError, match="'fc_bias' has no values"):
        made(X)
    made.initialize("zeros")
    np.testing.assert_allclose(made(X), Y - BIAS)


def test_imports_on_a_gpu():
    with pytest.raises(UnsupportedError, match="gpu"):
        nn.SymbolBlock.imports(MODELS / "lstm_lm-symbol.json", "data", ctx=passlib.gpu())


def test_export_without_parameters(tmp_path):
    data = sym.var("data")
    written = nn.SymbolBlock(data * 2, data).export(str(tmp_path / "x"))
    assert written == (str(tmp_path / "x-symbol.json"), str(tmp_path / "x-0000.params"))
    # MXNet writes the same, and its loaders ask for the file.
    assert Path(written[1]).read_bytes() == struct.pack("<QQQQ", 0x112, 0, 0, 0)


def test_export_without_values(tmp_path):
    with pytest.raises(PasslibError, match="'fc_weight' has no values"):
        nn.SymbolBlock(layer(), sym.var("data")).export(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
