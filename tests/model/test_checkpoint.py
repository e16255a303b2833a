"""Checkpoints: a symbol and the weights of an epoch."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import passlib
from dense_layer import layer, weights
from passlib import model, nd
from passlib.errors import FormatError, UnsupportedError
from recorded_models import MODELS, WITH_WEIGHTS


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_round_trip(name, tmp_path):
    symbol, args, aux = model.load_checkpoint(MODELS / name, 0)
    assert set(aux) == set(symbol.list_auxiliary_states())
    assert set(args) == set(symbol.list_arguments()) - {"data"}
    model.save_checkpoint(tmp_path / "copy", 12, symbol, args, aux)
    text = (MODELS / f"{name}-symbol.json").read_bytes()
    assert (tmp_path / "copy-symbol.json").read_bytes() == text
    again = model.load_params(tmp_path / "copy", 12)
    for before, after in zip((args, aux), again, strict=True):
        assert list(before) == list(after)
        for key, array in before.items():
            np.testing.assert_array_equal(array, after[key])


def test_prefixes_are_written_arguments_first(tmp_path):
    aux = {"m": nd.ones((2,))}
    model.save_checkpoint(str(tmp_path / "x"), 3, layer(), weights(), aux)
    assert list(nd.load(tmp_path / "x-0003.params")) == [
        "arg:fc_weight",
        "arg:fc_bias",
        "aux:m",
    ]


def test_device_is_not_written(tmp_path):
    array = nd.ones((2,), ctx=passlib.cpu(1))
    model.save_checkpoint(tmp_path / "x", 0, None, {"w": array}, {})
    model.save_checkpoint(tmp_path / "y", 0, None, {"w": nd.ones((2,))}, {})
    one, two = (tmp_path / f"{n}-0000.params" for n in "xy")
    assert one.read_bytes() == two.read_bytes()


def test_without_symbol_its_file_stays(tmp_path):
    model.save_checkpoint(tmp_path / "x", 0, None, weights(), {})
    assert [path.name for path in tmp_path.iterdir()] == ["x-0000.params"]


@pytest.mark.parametrize("symbol", [None, layer()])
def test_failure_leaves_both_files(symbol, tmp_path):
    model.save_checkpoint(tmp_path / "x", 0, layer(), weights(), {})
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    bad = {"w": np.ones(2, np.complex64)}
    with pytest.raises(UnsupportedError, match=r"'arg:w'.*complex64"):
        model.save_checkpoint(tmp_path / "x", 0, symbol, bad, {})
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_name_without_prefix(tmp_path):
    nd.save(tmp_path / "x-0000.params", {"fc_weight": nd.ones((1,))})
    with pytest.raises(FormatError, match=r"x-0000\.params: the name 'fc_weight' begins with"):
        model.load_params(tmp_path / "x", 0)


def test_other_prefix_is_passed_over(tmp_path):
    nd.save(tmp_path / "x-0000.params", {"arg:w": nd.ones((1,)), "foo:z": nd.ones((1,))})
    args, aux = model.load_params(tmp_path / "x", 0)
    assert list(args) == ["w"]
    assert aux == {}


def test_empty_file_is_logged(tmp_path, caplog):
    nd.save(tmp_path / "x-0000.params", {})
    with caplog.at_level(logging.WARNING):
        assert model.load_params(tmp_path / "x", 0) == ({}, {})
    assert "x-0000.params is empty" in caplog.text


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"x-0007\.params"):
        model.load_params(tmp_path / "x", 7)


def test_damaged_file_is_named(tmp_path):
    (tmp_path / "x-0000.params").write_bytes(b"nonsense")
    with pytest.raises(FormatError, match=r"x-0000\.params"):
        model.load_params(tmp_path / "x", 0)
