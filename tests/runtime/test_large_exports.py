"""`to_onnx` beyond the size of a protobuf message: the graph and its data are one unit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import passlib
from passlib.errors import PasslibError
from passlib.files.regular import durability

checker = pytest.importorskip("onnx.checker")

SIDE = 11_000
LAYERS = 5


def large_model(first: float) -> passlib.Model:
    """Five layers without values but the first, whose memory is never touched: 2.25 GiB."""
    y, args = passlib.sym.var("x"), {}
    for layer in range(LAYERS):
        y = passlib.sym.FullyConnected(y, num_hidden=SIDE, no_bias=True, name=f"f{layer}")
        args[f"f{layer}_weight"] = np.zeros((SIDE, SIDE), np.float32)
    args["f0_weight"][0, 0] = first
    return passlib.Model(y, args)


def content(folder: Path) -> dict[str, tuple[int, int]]:
    found = {path.name: path.stat() for path in folder.iterdir()}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that pytest does not keep, and files that need not reach the disk."""
    with durability(False):
        yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.sample(0)  # writes 2.25 GiB three times
def test_export_beyond_two_gibibytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "large.onnx"
    large_model(1).to_onnx(path, shapes={"x": (1, SIDE)})
    before = content(folder)
    assert before.keys() == {"large.onnx", "large.onnx.data"}
    assert path.stat().st_size < 10_000

    def object_to(*_: object, **__: object) -> None:
        raise checker.ValidationError("made up")

    with monkeypatch.context() as patch:
        patch.setattr(checker, "check_model", object_to)
        with pytest.raises(PasslibError, match=r"large\.onnx: the ONNX checker objects: made up"):
            large_model(2).to_onnx(path, shapes={"x": (1, SIDE)})
    assert content(folder) == before
    assert passlib.load(path).args["f0_weight"][0, 0] == 1

    large_model(3).to_onnx(path, shapes={"x": (1, SIDE)})
    assert len(content(folder)) == 2
    assert passlib.load(path).args["f0_weight"][0, 0] == 3
