"""Models whose elementwise operators run in a library: the outputs are still those of MXNet."""

from __future__ import annotations

import json

import numpy as np
import pytest

import passlib as pl
from example_build import build_example
from places import DATA

MODELS = DATA / "mxnet" / "models"
# Model and partitioner, with the number of subgraph nodes.
CASES = {
    ("resnet_v1_small", "myProp"): 7,
    ("resnet_v1_small", "mySelect"): 3,
    ("squeezenet1.1", "myProp"): 26,
    ("mobilenet0.25", "myProp"): 27,
}


@pytest.fixture(autouse=True, scope="module")
def library() -> pl.library.Library:
    return pl.library.load(build_example("lib_subgraph", "subgraph_lib.cc"), verbose=False)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dedup", [False, True])
@pytest.mark.parametrize(("name", "backend"), CASES)
def test_same_outputs(name: str, backend: str, dedup: bool) -> None:
    model = pl.load(MODELS / name)
    partitioned = model.optimize_for(backend, dedup_subgraph=dedup)
    ops = [node["op"] for node in json.loads(partitioned.symbol.tojson())["nodes"]]
    assert ops.count("_custom_subgraph_op") == CASES[name, backend]
    with np.load(MODELS / f"{name}-io.npz") as recorded:
        inputs = {key[3:]: recorded[key] for key in recorded if key.startswith("in/")}
        expected = recorded["out/0"]
    (output,) = partitioned.run(inputs).values()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4 * scale)
