"""Models that a rule without one of its conditions would change."""

from __future__ import annotations

from importlib.resources import files

import pytest

import passlib
from rewriting import parsed

KEPT = {
    "a pad above the least number of double": (
        "layers",
        "padIntoMaxPool",
        (
            "g (double[1, 1, 4, 4] x) => (double[1, 1, 6, 6] y) "
            "<int64[8] p = {0, 0, 2, 2, 0, 0, 2, 2}, double v = {-3.1e38}> "
            "{ q = Pad(x, p, v) y = MaxPool <kernel_shape = [3, 3]> (q) }"
        ),
        "Pad",
    ),
    "a third matrix that makes Gemm fail": (
        "layers",
        "gemmWithZero",
        (
            "g (float[2, 3] a, float[3, 5] b) => (float[2, 5] y) <float[4] c = {0, 0, 0, 0}> "
            "{ y = Gemm(a, b, c) }"
        ),
        "Gemm",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_model_stays(name: str) -> None:
    family, rule, text, op = KEPT[name]
    rules = passlib.Rules.load(str(files("passlib") / f"rules/{family}.rules"))
    made = passlib.load(parsed(text)).optimize_for(rules, only=[rule])
    (node,) = [node for node in made.symbol.nodes() if node.op == op]
    assert len(node.inputs) == 3
