"""The files that belong to a model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import passlib
from passlib.mxnet import files


@pytest.fixture
def folder(tmp_path):
    for name in ("m-symbol.json", "m-0000.params", "m-0012.params", "m-10000.params"):
        (tmp_path / name).touch()
    # Files of other models, whose names begin alike.
    for name in ("m-1-symbol.json", "m-1-0099.params", "m2-0099.params", "m-0001.params.bak"):
        (tmp_path / name).touch()
    (tmp_path / "plain.json").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "epoch", "symbol", "params"),
    [
        ("m", None, "m-symbol.json", "m-10000.params"),
        ("m", 12, "m-symbol.json", "m-0012.params"),
        ("m-symbol.json", None, "m-symbol.json", "m-10000.params"),
        ("m-symbol.json", 0, "m-symbol.json", "m-0000.params"),
        ("m-0012.params", None, "m-symbol.json", "m-0012.params"),
        ("m-1", None, "m-1-symbol.json", "m-1-0099.params"),
        ("plain.json", None, "plain.json", None),
    ],
)
def test_found(folder, path, epoch, symbol, params):
    found = files.find(folder / path, epoch)
    assert found.symbol == folder / symbol
    assert found.params == (folder / params if params else None)


@pytest.mark.parametrize(
    ("path", "epoch", "message"),
    [
        ("m", 5, "no weights of epoch 5; those saved are 0, 12, 10000"),
        ("plain.json", 5, "no weights of epoch 5; none was saved"),
        ("other", None, "no such symbol file.*other-symbol.json"),
        ("m2-0099.params", None, "no such symbol file.*m2-symbol.json"),
        ("nowhere/m", None, "no such symbol file"),
    ],
)
def test_not_found(folder, path, epoch, message):
    with pytest.raises(FileNotFoundError, match=message):
        files.find(folder / path, epoch)


@pytest.mark.parametrize("name", ["net", "net-symbol.json", "net-0003.params"])
def test_a_load_lists_the_folder_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = passlib.sym.FullyConnected(passlib.sym.var("x"), num_hidden=2, no_bias=True, name="fc")
    weights = {"fc_weight": passlib.nd.ones((2, 3))}
    passlib.model.save_checkpoint(tmp_path / "net", 3, model, weights, {})
    listed: list[str] = []
    for function in ("listdir", "scandir"):
        original = getattr(os, function)
        monkeypatch.setattr(
            os,
            function,
            lambda path, read=original: (listed.append(os.fspath(path)), read(path))[1],
        )
    passlib.load(tmp_path / name)
    assert listed == [str(tmp_path)]


def test_an_epoch_that_was_not_saved_is_named(tmp_path: Path) -> None:
    symbol = passlib.sym.relu(passlib.sym.var("x"))
    passlib.model.save_checkpoint(tmp_path / "net", 3, symbol, {}, {})
    with pytest.raises(FileNotFoundError, match="no weights of epoch 4; those saved are 3"):
        passlib.load(tmp_path / "net-0004.params")
