"""The architectures of MXNet's model zoo, exported to ONNX with open sizes.

``PASSLIB_ZOO=all`` runs all 34 of them, which takes some minutes; by default one of each small
family runs. The largest difference of each is printed by ``pytest -rP``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import passlib as pl
from mxnet_process import MXNet

SMALL = ("mobilenet0.25", "mobilenetv2_0.25", "resnet18_v1", "resnet18_v2", "squeezenet1.0")
ALL = (
    *(f"resnet{depth}_v{version}" for version in (1, 2) for depth in (18, 34, 50, 101, 152)),
    *(f"vgg{depth}{normalized}" for normalized in ("", "_bn") for depth in (11, 13, 16, 19)),
    "alexnet",
    *(f"densenet{depth}" for depth in (121, 161, 169, 201)),
    *("squeezenet1.0", "squeezenet1.1", "inceptionv3"),
    *(f"mobilenet{width}" for width in ("1.0", "0.75", "0.5", "0.25")),
    *(f"mobilenetv2_{width}" for width in ("1.0", "0.75", "0.5", "0.25")),
)
ARCHITECTURES = ALL if os.environ.get("PASSLIB_ZOO") == "all" else SMALL


def worst(
    session: onnxruntime.InferenceSession, io: dict[str, np.ndarray], numbers: Iterable[int]
) -> float:
    """Return the largest difference to MXNet's outputs, relative to their largest element."""
    found = 0.0
    for number in numbers:
        expected = io[f"out/{number}"]
        (actual,) = session.run(None, {"data": io[f"in/{number}"]})
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        found = max(found, float(np.abs(actual - expected).max() / np.abs(expected).max()))
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_open_sizes(name: str, mxnet: MXNet, tmp_path: Path) -> None:
    """An open batch, and open height and width where MXNet itself runs pictures of another size."""
    side = 299 if name == "inceptionv3" else 224
    shapes = [(2, 3, side, side), (1, 3, side, side), (3, 3, side, side), (1, 3, side + 32, side)]
    mxnet("export_zoo", name=name, folder=str(tmp_path), shapes=shapes)
    with np.load(tmp_path / f"{name}-io.npz") as file:
        io = dict(file)
    assert {"out/0", "out/1", "out/2"} <= io.keys()
    model = pl.load(tmp_path / f"{name}-symbol.json")
    other = "out/3" in io
    for sizes in ((None, 3, side, side), (None, 3, None, None))[: 1 + other]:
        target = tmp_path / "exported.onnx"
        model.to_onnx(target, shapes={"data": sizes})
        session = onnxruntime.InferenceSession(target)
        stated = [size if isinstance(size, int) else None for size in session.get_inputs()[0].shape]
        assert stated == list(sizes)
        difference = worst(session, io, range(3 + (other and sizes[3] is None)))
        print(f"{name} {sizes}: {difference:.1e}")
        assert difference < 1e-5
