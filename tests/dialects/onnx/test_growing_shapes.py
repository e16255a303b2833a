"""Shapes of very many axes are not inferred, and take neither time nor memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import parser

import passlib
from peak_memory import PEAK
from sanitized import unless_sanitized

OLD = '<ir_version: 8, opset_import: ["" : 11, "own" : 1]> g '
NEW = OLD.replace("11", "18")
NESTED = (
    "If(c) <then_branch = t () => (float[N, M] r) { %s }, "
    "else_branch = e () => (float[N, M] q) { %s }>"
)


def joins(count: int, op: str = "Gather") -> str:
    """Return nodes of which each doubles the axes of `v0`, from `v0` to `v{count}`."""
    return " ".join(f"i{k} = Cast<to = 7>(v{k}) v{k + 1} = {op}(v{k}, i{k})" for k in range(count))


HOSTILE: dict[str, str] = {
    "Expand by a stated length": OLD
    + "(float[2] x, int64[2147483648] s) => (float[N] y) { y = Expand(x, s) }",
    "Expand by a computed length": OLD
    + "(float[2] x, int64[2147483648] s) => (float[N] y) { t = Concat<axis = 0>(s, s) "
    "y = Expand(x, t) }",
    "Gather": NEW + f"(float[2, 2] v0) => (float[N] y) {{ {joins(30)} y = Relu(v30) }}",
    "GatherND": NEW
    + f"(float[2, 2, 2, 1] v0) => (float[N] y) {{ {joins(30, 'GatherND')} y = Relu(v30) }}",
    "in branches": NEW
    + "(float[2, 2] v0, bool c) => (float[N] y) { v30 = "
    + NESTED % (joins(30) + " r = Relu(v30)", "q = Relu(v0)")
    + " y = Relu(v30) }",
    "in a function": NEW
    + "(float[2, 2] x) => (float[N] y) { y = own.f(x) } "
    + f'<domain: "own", opset_import: ["" : 18]> f (v0) => (v30) {{ {joins(30)} }}',
    "in functions of functions": NEW
    + "(float[2, 2] x) => (float[N] y) { y = own.f3(x) } "
    + " ".join(
        f'<domain: "own", opset_import: ["" : 18, "own" : 1]> f{k} (a) => (b) '
        f"{{ m = own.f{k - 1}(a) b = own.f{k - 1}(m) }}"
        for k in (3, 2, 1)
    )
    + f' <domain: "own", opset_import: ["" : 18]> f0 (v0) => (v4) {{ {joins(4)} }}',
    "Expand in a function": OLD
    + "(float[2] x, int64[2147483648] s) => (float[N] y) { y = own.f(x, s) } "
    '<domain: "own", opset_import: ["" : 11]> f (p, q) => (r) { r = Expand(p, q) }',
    "behind a stated shape that is wrong": NEW
    + "(float[8] x, int64[3] s) => (float[N] y) <float[1, 1] w> { w = Reshape(x, s) "
    + f"j = Cast<to = 7>(w) v0 = GatherND(w, j) {joins(30)} y = Relu(v30) }}",
    "one axis a node": NEW
    + "(float[2, 2] v0) => (float[N] y) <int64[1] a = {0}> { "
    + " ".join(f"v{k + 1} = Unsqueeze(v{k}, a)" for k in range(8000))
    + " y = Relu(v8000) }",
}

CHILD = (
    PEAK
    + """
import resource, sys
import passlib
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
model = passlib.load(sys.argv[1])
model.symbol.infer_shape_partial()
try:
    model.to_onnx(sys.argv[1] + ".copy")
except passlib.PasslibError:
    pass
print(peak())
"""
)


@pytest.mark.sample(3)
@unless_sanitized("its own memory is beyond the limit")
@pytest.mark.parametrize("what", HOSTILE)
def test_shapes_of_very_many_axes_take_no_memory(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(parser.parse_model(HOSTILE[what]).SerializeToString())
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 700


USUAL: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Expand by a shape": (
        OLD
        + "(float[2, 5] x, float[1] z) => (float[N, M] y) <int64[2] s = {2, 5}> "
        + "{ y = Expand(z, s) }",
        (2, 5),
    ),
    "many lookups": (
        NEW
        + "(float[7, 3] x, int64[4] i) => (float[A, B] y) { v0 = Relu(x) "
        + " ".join(f"v{k + 1} = Gather(v{k}, i)" for k in range(300))
        + " y = Relu(v300) }",
        (4, 3),
    ),
    "a branch": (
        NEW
        + "(float[7, 3] x, int64[4] i, bool c) => (float[A, B] y) { y = "
        + NESTED % ("r = Gather(x, i)", "q = Gather(x, i)")
        + " }",
        (4, 3),
    ),
    "a long vector": (
        NEW
        + "(float[7, 3] x, int64[4] i, int64[5000] j, int64[2] o) => (int64[A, B] y) "
        + "<int64[1] a = {0}, int64 d = {7}> { "
        + " ".join(f"v{k} = Gather(x, i)" for k in range(9))
        + " h = OneHot(j, d, o) t = Gather(h, j) y = Unsqueeze(j, a) }",
        (1, 5000),
    ),
    "a function": (
        NEW
        + "(float[7, 3] x, int64[4] i) => (float[A, B] y) { y = own.f(x, i) } "
        + '<domain: "own", opset_import: ["" : 18]> f (p, q) => (r) { r = Gather(p, q) }',
        (4, 3),
    ),
}


@pytest.mark.parametrize(("text", "shape"), USUAL.values(), ids=USUAL)
def test_usual_shapes_are_inferred(text: str, shape: tuple[Any, ...]) -> None:
    model = passlib.load(parser.parse_model(text))
    assert model.symbol.infer_shape()[1] == [shape]


def test_axes_that_are_added_one_by_one_are_counted() -> None:
    nodes = " ".join(f"v{k + 1} = Unsqueeze<axes = [0]>(v{k})" for k in range(1100))
    text = f"{OLD}(float[2] v0) => (float[N] v1100) {{ {nodes} }}"
    with pytest.warns(UserWarning, match="cannot be inferred"):
        passlib.load(parser.parse_model(text)).symbol.infer_shape()
