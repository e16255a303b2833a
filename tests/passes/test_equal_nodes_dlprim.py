"""The standard pass mergeEqualNodes on networks of DLPrimitives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import passlib
from dlprim_files import NETWORKS, load, network, operator, same_results, with_weights
from node_counts import operators as operator_counts

MERGE = "mergeEqualNodes"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")

RELU = operator("a", "Activation", activation="relu")
DLPRIM: dict[str, tuple[list[dict[str, Any]], dict[str, Any], int]] = {
    "a function": (
        [
            RELU,
            operator("b", "Activation", activation="relu"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        1,
    ),
    "another option": (
        [
            RELU,
            operator("b", "Activation", activation="tanh"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "written over between": (
        [
            operator("a", "Abs"),
            operator("t", "Threshold", "data", "data"),
            operator("b", "Abs"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "shared weights": (
        [
            operator("a", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"]),
            operator("b", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"]),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        1,
    ),
    "frozen": (
        [
            operator("a", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"]),
            operator(
                "b", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"], frozen=True
            ),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "statistics": (
        [
            operator("a", "BatchNorm", affine=False, params=["m", "v"]),
            operator("b", "BatchNorm", affine=False, params=["m", "v"]),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "statistics, for inference": (
        [
            operator("a", "BatchNorm", affine=False, params=["m", "v"]),
            operator("b", "BatchNorm", affine=False, params=["m", "v"]),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {"inference": 1},
        1,
    ),
    "in place of equal tensors": (
        [
            RELU,
            operator("b", "Activation", activation="relu"),
            operator("c", "Hardtanh", "a", "a"),
            operator("d", "Hardtanh", "b", "b"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        2,
    ),
}


@pytest.mark.parametrize("case", DLPRIM)
def test_dlprim(case: str, tmp_path: Path) -> None:
    described, options, merged = DLPRIM[case]
    model = with_weights(load(tmp_path, network(*described)))
    result = model.optimize_for(MERGE, **options)
    assert operator_counts(model).total() - operator_counts(result).total() == merged
    same_results(model, result)
    result.save(tmp_path / "out.json")
    same_results(model, passlib.load(tmp_path / "out.json"))


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_genuine_networks_have_nothing_to_merge(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path)
    model.optimize_for(MERGE).optimize_for("removeDeadNodes").save(tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
