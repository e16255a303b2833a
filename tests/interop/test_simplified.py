"""MXNet runs its models after the standard passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib
from family_models import FOLDED, made
from mxnet_process import MXNet
from passlib.model import Model


def computed(mxnet: MXNet, model: Model, x: np.ndarray, folder: Path) -> list[np.ndarray]:
    """Return the outputs that MXNet computes."""
    # MXNet reads no file without arrays.
    weights = {**model.args, **model.aux, "unused": passlib.nd.zeros((1,))}
    passlib.nd.save(str(folder / "weights.params"), weights)
    np.savez(folder / "inputs.npz", data=x)
    mxnet(
        "forward",
        text=model.symbol.tojson(),
        params=str(folder / "weights.params"),
        inputs=str(folder / "inputs.npz"),
        outputs=str(folder / "outputs.npz"),
    )
    with np.load(folder / "outputs.npz") as file:
        return [file[key] for key in file.files]


@pytest.mark.parametrize("name", FOLDED)
def test_mxnet_computes_the_same(name: str, mxnet: MXNet, tmp_path: Path) -> None:
    _, build, shape, _ = FOLDED[name]
    before = made(build(), shape)
    after = before.simplify()
    assert len(after.symbol.nodes()) < len(before.symbol.nodes())
    x = np.random.default_rng(6).normal(size=shape).astype(np.float32)
    results = [computed(mxnet, model, x, tmp_path) for model in (before, after)]
    for have, want in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
