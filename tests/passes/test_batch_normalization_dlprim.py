"""The standard pass foldBatchNormalization on networks of DLPrimitives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import passlib
from dlprim_files import NETWORKS, load, network, operator, same_results, with_weights
from node_counts import norms

FOLD = "foldBatchNormalization"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")

LEFT = {"bn_predict.json": 3, "bn_train.json": 2, "unet_like.json": 1}
"""Normalizations after inputs and activations, by file."""


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_dlprim_files(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path)
    if norms(model) == 0:
        model.optimize_for(FOLD, skip_infer=True).save(tmp_path / path.name)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
        return
    model = with_weights(model)
    folded = model.optimize_for(FOLD, skip_infer=True)
    assert norms(folded) == LEFT.get(path.name, 0)
    if path.stat().st_size < 20_000:  # larger ones take long
        folded.save(tmp_path / "out.json")
        same_results(model, passlib.load(tmp_path / "out.json"))


def convolution(**more: Any) -> dict[str, Any]:
    return operator("c", "Convolution2D", **{"channels_out": 6, "kernel": 3, "pad": 1, **more})


BN = operator("n", "BatchNorm", "c", eps=0.01)
DLPRIM: dict[str, tuple[list[dict[str, Any]], tuple[int, ...], int]] = {
    "convolution": ([convolution(), BN], (2, 3, 4, 4), 1),
    "no bias": ([convolution(bias=False), BN], (2, 3, 4, 4), 1),
    "groups": ([convolution(groups=2), BN], (2, 4, 4, 4), 1),
    "in place": ([convolution(), operator("n", "BatchNorm", "c", "c")], (2, 3, 4, 4), 1),
    "without scale and shift": (
        [convolution(), operator("n", "BatchNorm", "c", affine=False)],
        (2, 3, 4, 4),
        1,
    ),
    "transposed": (
        [operator("c", "TransposedConvolution2D", channels_out=6, kernel=2, groups=2), BN],
        (2, 4, 4, 4),
        1,
    ),
    "dense": ([operator("c", "InnerProduct", outputs=5), BN], (2, 3), 1),
    "dense, no bias": ([operator("c", "InnerProduct", outputs=5, bias=False), BN], (2, 3), 1),
    "activation": ([convolution(activation="relu"), BN], (2, 3, 4, 4), 0),
    "identity": ([convolution(activation="identity"), BN], (2, 3, 4, 4), 1),
    "two users": (
        [convolution(), BN, operator("s", "Elementwise", ["c", "n"])],
        (2, 3, 4, 4),
        0,
    ),
    "two norms": ([convolution(), BN, operator("m", "BatchNorm", "n")], (2, 3, 4, 4), 2),
}


@pytest.mark.parametrize("case", DLPRIM)
def test_dlprim_cases(case: str, tmp_path: Path) -> None:
    operators, shape, folded = DLPRIM[case]
    model = with_weights(load(tmp_path, network(*operators, shape=shape)))
    result = model.optimize_for(FOLD)
    assert norms(model) - norms(result) == folded
    same_results(model, result)
    result.save(tmp_path / "out.json")
    same_results(model, passlib.load(tmp_path / "out.json"))
