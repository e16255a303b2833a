"""Models that nobody here made compute what ONNX Runtime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import passlib
from real_models import find

SIZES: dict[str, dict[str, tuple[int | str, ...]]] = {
    "silero_vad/data/silero_vad.onnx": {"input": ("n", 512), "state": (2, "n", 128), "sr": ()},
    "silero_vad/data/silero_vad_op18_ifless.onnx": {
        "input": ("n", 512), "state": (2, "n", 128), "sr": (),
    },
    "magika/models/standard_v3_3/model.onnx": {"bytes": ("n", 2048)},
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": {"x": ("n", 3, 64, 96)},
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": ("n", 3, 48, 192)},
}  # fmt: skip
"""Sizes of the inputs, where n is chosen."""


def feeds(session: Any, sizes: dict[str, tuple[int | str, ...]], n: int) -> dict[str, Any]:
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


@pytest.mark.parametrize("name", SIZES)
def test_real_models_compute_what_onnx_runtime_computes(name: str, tmp_path: Path) -> None:
    path = find(name)
    passlib.library.load_standard()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    model = passlib.load(path)
    passed = model.optimize_for("removeDeadNodes").optimize_for("mergeEqualNodes")
    passed.save(tmp_path / "a.onnx")
    assert not [p for p in passlib.validate(tmp_path / "a.onnx") if p.severity == "error"]
    for n in (1, 3):
        given = feeds(session, SIZES[name], n)
        expected = session.run(None, given)
        for each in (model, passed, passlib.load(tmp_path / "a.onnx")):
            outputs = each.run(given, threads=1)
            for have, want in zip(outputs.values(), expected, strict=True):
                np.testing.assert_allclose(have.asnumpy(), want, rtol=1e-3, atol=1e-4)
