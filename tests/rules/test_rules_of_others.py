"""passlib has the rules that docs/rules-of-others.md names."""

from __future__ import annotations

import re
from collections import Counter

import onnx
import onnx.parser
import pytest

import passlib as pl
from passlib.library.backends import joined
from passlib.passes.rules import books
from places import ROOT

PAGE = (ROOT / "docs" / "rules-of-others.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
RULES = {rule.name for book in books() for rule in book}
OPTIONS = {"simplify", "fixed"}
WEIGHT = "float[3, 2, 1, 1] w = {1, 2, 3, 4, 5, 6}"
SCALE = "float[3] s = {1, 2, 3}, float[3] h = {2, 1, 0.5}"
INDEX = "int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64 o = {1}"

MODELS = {
    # By rewrite: inputs and outputs, constants, operators, and what simplify leaves.
    "Split into one part": (
        "(float[2] x) => (float[2] y)", "", "a = Split<num_outputs = 1>(x) y = Neg(a)", "Neg"),
    "Operators on constants are computed": (
        "(float[2] x) => (float[2] y)", "float[2] c = {1, 2}", "a = Exp(c) y = Mul(x, a)", "Mul"),
    "Equal operators are one": (
        "(float[2] x) => (float[2] y)", "", "a = Exp(x) b = Exp(x) c = Neg(b) y = Mul(a, c)",
        "Exp Neg Mul"),
    "Operators, initializers and functions that nothing uses are removed": (
        "(float[2] x) => (float[2] y)", "", "a = Exp(x) y = Neg(x)", "Neg"),
    "Loop of a known number of iterations is unrolled": (
        "(float[2] x) => (float[2] y)", "int64 n = {1}",
        ("y = Loop(n, , x) <body = b (int64 i, bool c, float[2] p) => (bool d, float[2] q) "
        "{ d = Identity(c) q = Neg(p) }>"), "Neg"),
    "If with a known condition is its branch": (
        "(float[2] x) => (float[2] y)", "bool c = {1}",
        ("y = If (c) <then_branch = t () => (float[2] p) { p = Neg(x) }, "
        "else_branch = e () => (float[2] q) { q = Exp(x) }>"), "Neg"),
    "A Slice of a Shape of known dimensions": (
        "(float[2, 3] x, int64[2] k) => (int64[2] y)", INDEX,
        "s = Shape(x) t = Slice(s, i1, i2) y = Mul(t, k)", "Mul"),
    "The target of a Reshape that is joined of dimensions becomes a constant with 0 and -1": (
        "(float[N, 3, 4] x) => (float[N, M] y)", "int64[1] m = {-1}," + INDEX,
        "s = Shape(x) t = Slice(s, i0, i1) u = Concat<axis = 0>(t, m) y = Reshape(x, u)",
        "Reshape"),
    "Dimensions of one Shape that are taken apart and joined are the Shape": (
        "(float[N, M] x, float[1, 1] z) => (float[N, M] y)", INDEX,
        ("s = Shape(x) a = Gather(s, i0) b = Gather(s, i1) t = Concat<axis = 0>(a, b) "
        "y = Expand(z, t)"), "Shape Expand"),
    "Transpose that only moves axes of 1 is a Reshape": (
        "(float[2, 1, 3] x) => (float[6] y)", "int64[1] f = {6}",
        "t = Transpose<perm = [1, 0, 2]>(x) y = Reshape(t, f)", "Reshape"),
    ("Transpose through elementwise operators, Concat, Split, Pad, Softmax, reductions, Squeeze "
     "and Unsqueeze"): (
        "(float[2, 3, 4] x) => (float[2, 3, 8] y)",
        "",
        ("t = Transpose<perm = [0, 2, 1]>(x) r = Relu(t) "
        "c = Concat<axis = 1>(r, r) y = Transpose<perm = [0, 2, 1]>(c)"),
        "Relu Concat",
    ),
    "Slice of Slice": (
        "(float[8, 4] x) => (float[1, 4] y)", INDEX,
        "a = Slice(x, i1, i3, i0) b = Slice(a, i0, i1, i0) y = Neg(b)", "Slice Neg"),
    "Slices of every second element, joined, are SpaceToDepth": (
        "(float[1, 2, 4, 4] x) => (float[1, 8, 2, 2] y)",
        ("int64[2] a = {0, 0}, int64[2] b = {0, 1}, int64[2] c = {1, 0}, int64[2] d = {1, 1}, "
         "int64[2] e = {9223372036854775807, 9223372036854775807}, int64[2] n = {2, 3}, "
         "int64[2] k = {2, 2}"),
        ("p = Slice(x, a, e, n, k) q = Slice(x, b, e, n, k) r = Slice(x, c, e, n, k) "
        "s = Slice(x, d, e, n, k) y = Concat<axis = 1>(p, q, r, s)"), "SpaceToDepth"),
    "Mul of Mul, Add of Add with constants": (
        "(float[2, 3] x) => (float[2, 3] y)", "float a = {2}, " + SCALE,
        "b = Mul(x, a) c = Mul(b, s) y = Neg(c)", "Mul Neg"),
    "BatchNormalization into Conv, ConvTranspose, Gemm, MatMul": (
        "(float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y)", f"{WEIGHT}, {SCALE}",
        "c = Conv(x, w) b = BatchNormalization(c, s, h, h, s) y = Relu(b)", "Conv Relu"),
    "Mul after Conv goes into its weight": (
        "(float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y)",
        f"{WEIGHT}, float[3, 1, 1] f = {{1, 2, 3}}", "c = Conv(x, w) b = Mul(c, f) y = Relu(b)",
        "Conv Relu"),
    "Add after Conv is its bias": (
        "(float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y)",
        f"{WEIGHT}, float[3, 1, 1] f = {{1, 2, 3}}", "c = Conv(x, w) b = Add(c, f) y = Relu(b)",
        "Conv Relu"),
    "Mul before Conv goes into its weight": (
        "(float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y)",
        f"{WEIGHT}, float[2, 1, 1] f = {{1, 2}}", "c = Mul(x, f) b = Conv(c, w) y = Relu(b)",
        "Conv Relu"),
    "Pad before Conv, MaxPool and AveragePool": (
        "(float[1, 2, 4, 4] x) => (float[1, 3, 6, 6] y)",
        WEIGHT + ", int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}", "c = Pad(x, p) y = Conv(c, w)", "Conv"),
    "MatMul and Add are Gemm": (
        "(float[2, 3] x, float[3, 3] m) => (float[2, 3] y)", SCALE,
        "c = MatMul(x, m) y = Add(c, s)", "Gemm"),
    "Add, Sum or Mul after Gemm": (
        "(float[2, 3] x, float[3, 3] m) => (float[2, 3] y)", SCALE,
        "c = MatMul(x, m) d = Gemm(c, m) y = Add(d, s)", "MatMul Gemm"),
    "Expand before an operator that broadcasts": (
        "(float[2, 1] x, float[2, 3] z) => (float[2, 3] y)", "int64[2] k = {2, 3}",
        "a = Expand(x, k) y = Add(a, z)", "Add"),
    "Weights that are cast and scaled are dequantized": (
        "(float[2, 2] x) => (float[2, 2] y)", "int8[2, 2] k = {1, 2, 3, 4}, float f = {0.5}",
        "a = Cast<to = 1>(k) b = Mul(a, f) y = MatMul(b, x)", "DequantizeLinear MatMul"),
}  # fmt: skip


@pytest.mark.parametrize("rewrite", MODELS)
def test_simplify_has_it(rewrite: str) -> None:
    signature, constants, body, expected = MODELS[rewrite]
    constants = f"<{constants}>" if constants else ""
    text = f'<ir_version: 8, opset_import: ["": 18]> g {signature} {constants} {{ {body} }}'
    made = pl.load(onnx.parser.parse_model(text)).simplify()
    found = Counter(node.op for node in made.symbol.nodes() if node.op != "null")
    assert found == Counter(expected.split())
    assert rewrite in [row[0] for row in ROWS]


def test_the_page_names_rules_and_passes() -> None:
    pl.library.load_standard()
    passes = {each.declaration.name for name in ("clean", "simplify") for each in joined(name)}
    passes |= {"fuseSkips", "mergeEqualWeights", "nameUniquely", "weightsToConstants"}
    named = {name for row in ROWS[1:] for name in re.findall(r"`(\w+)`", row[-1])}
    assert named - RULES - passes - OPTIONS - {"auto_pad"} == set()
    # Rules without a row are passlib's alone.
    assert {len(row) for row in ROWS} == {3}
