"""Elements of a sequence have sizes of their own, which no pass takes for equal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passlib
from rewriting import parsed, results

MADE = {
    "SplitToSequence": "q = SplitToSequence(x, two)",
    "SequenceConstruct": "a = NonZero(x) b = NonZero(z) q = SequenceConstruct(a, b)",
    "SequenceInsert": "a = NonZero(x) b = NonZero(z) p = SequenceConstruct(a) "
    "q = SequenceInsert(p, b)",
    "SequenceMap": "p = SequenceConstruct(x, z) "
    "q = SequenceMap(p) <body = g (float[k] e) => (int64[1, l] f) { f = NonZero(e) }>",
    "SequenceMap of uneven ones": "p = SequenceConstruct(x, w) "
    "q = SequenceMap(p) <body = g (float[k] e) => (float[l] f) { f = Add(e, e) }>",
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", MADE)
def test_sizes_of_elements_are_not_taken_for_equal(name: str, exact: bool, tmp_path: Any) -> None:
    data = parsed(
        '<ir_version: 8, opset_import: ["" : 18]> '
        "g (float[n] x, float[n] z, float[m] w) => (bool[r] y) "
        "<int64 two = {2}, int64 first = {0}, int64 last = {-1}> "
        f"{{ {MADE[name]} a0 = SequenceAt(q, first) a1 = SequenceAt(q, last) "
        "s0 = Shape(a0) s1 = Shape(a1) y = Equal(s0, s1) }"
    )
    passlib.simplify(data, exact=exact).save(tmp_path / "made.onnx")
    feeds = {
        "x": np.array([1, 0, 0], np.float32),
        "z": np.array([1, 1, 1], np.float32),
        "w": np.array([1, 1], np.float32),
    }
    (want,) = results(data, feeds)
    (have,) = results((tmp_path / "made.onnx").read_bytes(), feeds)
    assert have.tolist() == want.tolist()
    assert not want.all()
