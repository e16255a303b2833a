"""Files whose names are not UTF-8, as Linux allows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from commands import passlib_command
from failing_saves import MAKERS
from passlib.errors import UnsupportedError

ODD = os.fsdecode(b"n\xff\xc3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    try:
        (tmp_path / ODD).mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    return tmp_path / ODD


@pytest.mark.parametrize("dialect", MAKERS)
def test_models(dialect: str, folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    path = folder / MAKERS[dialect](plain).name
    shutil.copytree(plain, folder, dirs_exist_ok=True)
    model = pl.load(path)
    again = pl.load(model.save(folder / f"{ODD}{path.suffix}")[0])
    assert again.symbol.graph.equals(model.symbol.graph)
    for name, array in model.args.items():
        np.testing.assert_array_equal(again.args[name], array)


def test_external_data(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) '
        "<float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    onnx.save(
        model, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0
    )
    loaded = pl.load(folder / "m.onnx")
    loaded.save(folder / "again.onnx", external_data=True, size_threshold=0)
    np.testing.assert_array_equal(pl.load(folder / "again.onnx").args["w"], [1, 2])


def test_external_data_of_such_a_name(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) '
        "<float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    onnx.save(model, folder / "m.onnx")
    loaded = pl.load(folder / "m.onnx")
    for path, location in ((f"{ODD}.onnx", None), ("again.onnx", ODD)):
        with pytest.raises(UnsupportedError, match=r"must be UTF-8, and b'n\\xff\\xc3.* is not"):
            loaded.save(folder / path, external_data=True, location=location, size_threshold=0)
    assert list(folder.iterdir()) == [folder / "m.onnx"]


def test_libraries(folder: Path, plugin: Callable[[str], Path]) -> None:
    """In processes of their own: a library keeps the names of its passes."""
    path = shutil.copy(plugin("good"), folder / f"{ODD}.so")
    pl.Model(pl.sym.exp(pl.sym.var("x"))).save(folder / "m")
    words = ("-l", path, "--passes", "identity", "-o", folder / "o")
    done = passlib_command("opt", folder / "m", *words)
    assert done.returncode == 0, done.stderr
    done = passlib_command("abi", path)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Exp(x) }'
    )
    onnx.save(model, folder / "m.onnx")
    done = passlib_command("opt", folder / "m.onnx", "-o", folder / "o.onnx", "--json")
    assert done.returncode == 0, done.stderr
    (facts,) = json.loads(done.stdout)
    assert facts["files"] == [str(folder / "o.onnx")]
    done = passlib_command("inspect", folder / "m.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    done = passlib_command("inspect", folder / "none.onnx")
    assert done.returncode == 1
    assert r"n\udcff\udcc3/none.onnx: there is no such model" in done.stderr
