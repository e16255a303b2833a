"""Names under which models are saved."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dense_layer import X, Y
from failing_saves import MAKERS
from passlib.errors import UnsupportedError
from passlib.model import Model, load


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("y", ("y-symbol.json", "y-0000.params")),
        ("y-symbol.json", ("y-symbol.json", "y-0000.params")),
        ("y.json", ("y.json", "y-0000.params")),
        ("y.v1", ("y.v1-symbol.json", "y.v1-0000.params")),
        ("y-0.5", ("y-0.5-symbol.json", "y-0.5-0000.params")),
    ],
)
def test_names_of_mxnet(name: str, files: tuple[str, ...], small: Model, tmp_path: Path) -> None:
    assert tuple(map(os.path.basename, small.save(tmp_path / name))) == files
    assert {path.name for path in tmp_path.iterdir()} == set(files)
    again = load(tmp_path / name)
    assert again.dialect == "mxnet"
    np.testing.assert_allclose(again(X), Y)


SUFFIXES = {
    "w.onnx": "a suffix of ONNX.*passlib.convert",
    "w.ONNX": "a suffix of ONNX.*passlib.convert",
    "w.dlp": "a suffix of DLPrimitives",
    "w.h5": "a suffix of DLPrimitives",
    "w.params": "the suffix of a weight file; .*w.json",
    "w-0003.params": "the suffix of a weight file",
    "w.npz": "the suffix of a weight file",
}


@pytest.mark.parametrize("name", SUFFIXES)
def test_suffix_of_another_format(name: str, small: Model, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=SUFFIXES[name]):
        small.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["ark", "dlprim", "nnvm"])
def test_the_name_of_a_model_of_mxnet(kind: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "out").mkdir()
    model = load(MAKERS[kind](tmp_path / "source"))
    with pytest.raises(UnsupportedError, match=r"read as MXNet's, .*; name it .*/out/x\.json$"):
        model.save(tmp_path / "out" / "x-symbol.json")
    assert list((tmp_path / "out").iterdir()) == []
    model.save(tmp_path / "out" / "x.json")
    assert load(tmp_path / "out" / "x.json").dialect == kind


ONNX: dict[str, Callable[[Model, Path, Path], object]] = {
    "save": lambda m, source, target: load(source.with_suffix(".onnx")).save(target),
    "to_onnx": lambda m, source, target: m.to_onnx(target, {"data": (1, 2)}),
    "convert": lambda m, source, target: passlib.convert(source, target, shapes={"data": (1, 2)}),
}


@pytest.mark.parametrize("way", ONNX)
def test_onnx_under_another_suffix(way: str, small: Model, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    small.save(tmp_path / "m")
    small.to_onnx(tmp_path / "m.onnx", {"data": (1, 2)})
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("net.json", "m-symbol.json", "v.params", "v.h5"):
        with pytest.raises(UnsupportedError, match=r"written as ONNX; name it .*\.onnx"):
            ONNX[way](small, tmp_path / "m", tmp_path / name)
    with pytest.raises(IsADirectoryError, match="add the name of a file in it"):
        ONNX[way](small, tmp_path / "m", f"{tmp_path}/")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_slash_at_the_end_is_a_folder(small: Model, tmp_path: Path) -> None:
    for name in (f"{tmp_path}/", f"{tmp_path}/new/"):
        with pytest.raises(IsADirectoryError, match=r"this is a folder; .*/model"):
            small.save(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "sub/.", "sub/.."])
def test_names_that_only_folders_have(
    name: str, small: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    (folder / "sub").mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(IsADirectoryError, match=r"this is a folder; .*model"):
        small.save(name)
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "sub"]


def test_a_path_of_bytes(small: Model, tmp_path: Path) -> None:
    path: Any = os.fsencode(tmp_path / "m")
    for save in (small.save, lambda path: small.to_onnx(path, {"data": (1, 2)})):
        with pytest.raises(TypeError, match=r"not bytes; use os\.fsdecode"):
            save(path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written_to_is_named(
    small: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = os.open

    def refuse(path, flags, *rest, **options):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", path)
        return original(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    for save in (small.save, lambda path: small.to_onnx(f"{path}.onnx", {"data": (1, 2)})):
        with pytest.raises(PermissionError) as caught:
            save(tmp_path / "m")
        assert caught.value.filename == str(tmp_path)
