"""Models that nobody here made compute what ONNX Runtime computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import passlib
from real_models import SIZES, feeds, find


@pytest.mark.sample(3)
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
