"""The eight fusions on models that nobody here made: where they occur, and equal results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import passlib
from fusion_models import FUSIONS
from fusion_rules import RULES
from real_models import SIZES, feeds, find

PAIRS = {(FUSIONS[title][0], RULES[title]) for title in FUSIONS}
"""Each pass in C++ with its rule in Python."""
OCCUR = {
    "magika/models/standard_v3_3/model.onnx": {"fuseGemm": 1},
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": {"fuseConvMul": 28},
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": {"fuseConvMul": 28},
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"fuseGemm": 1},
}
"""How many operators fewer a pass leaves; of all other passes and models none."""


@pytest.fixture(scope="module", autouse=True)
def fusions(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("fusions"), verbose=False)


def operators(model: passlib.Model) -> int:
    return sum(node.op != "null" for node in model.symbol.nodes())


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SIZES)
def test_fusions_on_real_models(name: str, tmp_path: Path) -> None:
    path = find(name)
    model = passlib.load(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    counts = {}
    for pair in sorted(PAIRS):
        fused = [model.optimize_for(each) for each in pair]
        fewer = {operators(model) - operators(each) for each in fused}
        assert len(fewer) == 1, (pair, fewer)
        counts[pair[0]] = max(fewer.pop(), counts.get(pair[0], 0))
        if not counts[pair[0]]:
            continue
        given = feeds(session, SIZES[name], 2)
        expected = session.run(None, given)
        for number, each in enumerate(fused):
            each.save(tmp_path / f"{number}.onnx")
            found = onnxruntime.InferenceSession(
                tmp_path / f"{number}.onnx", providers=["CPUExecutionProvider"]
            ).run(None, given)
            for have, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4)
    assert {key: count for key, count in counts.items() if count} == OCCUR.get(name, {})
