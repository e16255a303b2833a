"""Models that nobody here made, from packages that `make models` unpacks or that are installed.

``PASSLIB_REAL_MODELS`` names another folder in which packages such as silero_vad are unpacked.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import ROOT

SIZES: dict[str, dict[str, tuple[int | str, ...]]] = {
    "silero_vad/data/silero_vad.onnx": {"input": ("n", 512), "state": (2, "n", 128), "sr": ()},
    "silero_vad/data/silero_vad_op18_ifless.onnx": {
        "input": ("n", 512), "state": (2, "n", 128), "sr": (),
    },
    "magika/models/standard_v3_3/model.onnx": {"bytes": ("n", 2048)},
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": {"x": ("n", 3, 64, 96)},
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": {"x": ("n", 3, 48, 160)},
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": ("n", 3, 48, 192)},
}  # fmt: skip
"""Models with the sizes of their inputs, where n is chosen."""


def feeds(session: Any, sizes: dict[str, tuple[int | str, ...]], n: int) -> dict[str, Any]:
    """Return arrays for the inputs of a session."""
    random = np.random.default_rng(n)
    made = {}
    for value in session.get_inputs():
        shape = tuple(n if size == "n" else int(size) for size in sizes[value.name])
        whole = random.integers(0, 200, shape) if shape else 16_000
        made[value.name] = (
            random.random(shape, np.float32)
            if value.type == "tensor(float)"
            else np.array(whole, value.type[7:-1])
        )
    return made


def find(name: str) -> Path:
    """Return the path of a model, or skip the test."""
    for folder in (os.environ.get("PASSLIB_REAL_MODELS"), ROOT / "build" / "models"):
        if folder and (Path(folder) / name).exists():
            return Path(folder) / name
    package, _, rest = name.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is not None and spec.origin is not None and (Path(spec.origin).parent / rest).exists():
        return Path(spec.origin).parent / rest
    pytest.skip(f"{name} is not there: make models fetches the package {package}")
