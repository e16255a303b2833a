"""The standard pass foldBatchNormalization on graphs of NNVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from fold_cases import SQUARE, values
from nnvm_files import text_of
from node_counts import norms
from passlib.model import Model

FOLD = "foldBatchNormalization"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")


def nnvm_graph(layer: str, attrs: dict[str, str], **norm_attrs: str) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": name, "inputs": []} for name in ("data", "w", "b")
    ]
    nodes.append(
        {"op": layer, "name": "c", "attrs": attrs, "inputs": [[i, 0, 0] for i in range(3)]}
    )
    nodes += [
        {"op": "null", "name": name, "inputs": []} for name in ("gamma", "beta", "mean", "var")
    ]
    nodes.append(
        {
            "op": "batch_norm",
            "name": "n",
            "attrs": norm_attrs,
            "inputs": [[i, 0, int(i > 5)] for i in range(3, 8)],
        }
    )
    nodes.append({"op": "relu", "name": "r", "inputs": [[8, 0, 0]]})
    return {"nodes": nodes, "arg_nodes": [0, 1, 2, 4, 5, 6, 7], "heads": [[9, 0, 0]]}


NNVM: list[tuple[str, dict[str, str], dict[str, str], tuple[int, ...], tuple[int, ...], int]] = [
    ("conv2d", {"channels": "6", "kernel_size": "[3, 3]"}, {}, (6, 4, 3, 3), SQUARE, 1),
    (
        "conv2d",
        {"channels": "6", "kernel_size": "[3, 3]"},
        {"scale": "False", "epsilon": "0.1"},
        (6, 4, 3, 3),
        SQUARE,
        1,
    ),
    (
        "conv2d",
        {"channels": "6", "kernel_size": "[3, 3]"},
        {"center": "False"},
        (6, 4, 3, 3),
        SQUARE,
        1,
    ),
    (
        "conv2d",
        {"channels": "6", "kernel_size": "[3, 3]", "kernel_layout": "HWIO"},
        {},
        (3, 3, 4, 6),
        SQUARE,
        0,
    ),
    # Shapes are not inferred for NNVM, so the rank of the result is unknown.
    ("dense", {"units": "6"}, {}, (6, 5), (3, 5), 0),
    ("dense", {"units": "6"}, {"axis": "-1"}, (6, 5), (3, 5), 1),
]


@pytest.mark.parametrize(("layer", "attrs", "more", "weight", "shape", "folded"), NNVM)
def test_nnvm_cases(
    layer: str,
    attrs: dict[str, str],
    more: dict[str, str],
    weight: tuple[int, ...],
    shape: tuple[int, ...],
    folded: int,
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(text_of(nnvm_graph(layer, attrs, **more)))
    random = np.random.default_rng(2)
    arrays = {
        name: random.uniform(0.5, 2, 6).astype(np.float32)
        for name in ("b", "gamma", "beta", "mean", "var")
    }
    arrays["w"] = values(*weight)
    read = passlib.load(path, dialect="nnvm")
    states = set(read.symbol.list_auxiliary_states())
    model = Model(
        read.symbol,
        {name: array for name, array in arrays.items() if name not in states},
        {name: array for name, array in arrays.items() if name in states},
        "nnvm",
        template=read._template,
    )
    result = model.optimize_for(FOLD, shape_dict={"data": shape})
    assert norms(model) - norms(result) == folded
    x = values(*shape)
    np.testing.assert_allclose(np.asarray(result(x)), np.asarray(model(x)), rtol=1e-5, atol=1e-5)
