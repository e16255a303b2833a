"""MXNet models with the inputs and outputs that MXNet 1.9.1 computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from places import DATA

MODELS = DATA / "mxnet" / "models"
WITH_WEIGHTS = ("lstm_lm", "resnet_v1_small", "mobilenet0.25", "squeezenet1.1")

_TOLERANCE = 1e-4

_Array = np.ndarray[Any, Any]


def recorded(name: str) -> tuple[dict[str, _Array], list[_Array]]:
    """Return the recorded inputs by name, and the outputs."""
    with np.load(MODELS / f"{name}-io.npz") as archive:
        content = dict(archive)
    inputs = {key[3:]: value for key, value in content.items() if key.startswith("in/")}
    return inputs, [content[f"out/{i}"] for i in range(len(content) - len(inputs))]


def assert_close(actual: _Array, expected: _Array) -> None:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=_TOLERANCE, atol=_TOLERANCE * scale)
