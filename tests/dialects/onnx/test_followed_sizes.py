"""Sizes that a model computes are found, and long vectors are not followed element by element."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from onnx import parser

import onnx_models
import passlib
from passlib.errors import GraphError
from peak_memory import PEAK

K = "k = Shape(x)"

SIZES: dict[str, tuple[str, str, int]] = {
    "a product": ("t = Mul(k, k) y = ConstantOfShape(t)", "y", 4),
    "joined": ("t = Mul(k, k) a = ConstantOfShape(t) y = Concat<axis=0>(a, a)", "y", 8),
    "two rounds": (
        ("t = Mul(k, k) a = ConstantOfShape(t) b = Add(a, a) u = Shape(b) v = Mul(u, u) "
        "c = ConstantOfShape(v) y = Add(c, c)"),
        "c",
        16,
    ),
    "through a branch": (
        ("g = Constant<value = bool {1}>() y = If(g) <then_branch = t () => (float[N] r) "
        "{ t = Mul(k, k) r = ConstantOfShape(t) }, else_branch = e () => (float[N] q) "
        "{ u = Mul(k, k) q = ConstantOfShape(u) }>"),
        "y",
        4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SIZES)
def test_computed_sizes(what: str) -> None:
    nodes, name, size = SIZES[what]
    text = f"{onnx_models.HEAD} (float[2] x) => (float[N] y) {{ {K} {nodes} }}"
    model = passlib.load(parser.parse_model(text))
    message = re.escape(f"value '{name}' has the shape ({size}), which takes {4 * size} bytes")
    with passlib.limits(tensor_bytes=4 * size - 1), pytest.raises(GraphError, match=message):
        model.run({"x": np.ones(2, np.float32)})


LONG = f"{onnx_models.HEAD} (float[10000] x) => (float[N] y) "
VECTORS = {
    "stated": LONG
    + "{ s = Constant<value = int64[1] {100000000}>() a = ConstantOfShape(s) y = Add(a, a) }",
    "computed": LONG + "{ s = Shape(x) t = Mul(s, s) a = ConstantOfShape(t) y = Add(a, a) }",
    "in a function": LONG + "{ s = Shape(x) t = Mul(s, s) a = ConstantOfShape(t) y = own.f(a) } "
    '<domain: "own", opset_import: ["" : 17]> f (p) => (q) { q = Add(p, p) }',
}
CHILD = (
    PEAK
    + """
import sys
import numpy as np
import passlib
from onnx import parser
model = passlib.load(parser.parse_model(sys.argv[1]))
before = peak()
try:
    with passlib.limits(tensor_bytes=300_000_000):
        model.run({"x": np.ones(10_000, np.float32)})
except passlib.errors.GraphError as error:
    print(error)
print(peak() - before)
"""
)


@pytest.mark.parametrize("what", VECTORS)
def test_long_vectors_cost_no_memory(what: str) -> None:
    """onnx's inference took 5 GB for these."""
    text = VECTORS[what].replace('"" : 17]>', '"" : 17, "own" : 1]>')
    run = subprocess.run(
        [sys.executable, "-c", CHILD, text], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    message, megabytes = run.stdout.splitlines()
    assert message.startswith("value 'a' has the shape (100000000)")
    assert int(megabytes) < 300
