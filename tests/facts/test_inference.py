"""Facts of native inference: symbolic sizes, small contents, nested graphs, functions."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

import passlib._core as _core
from passlib.dialects.onnx.reading import read_bytes

HEAD = (
    '<ir_version: 8, opset_import: ["": 17, "l": 1, "ai.onnx.ml": 3]> '
    "g (float[N, 3, 4] x, bool c) => (float y) "
    "<int64[1] low = {-9223372036854775808}, int64[3] unit = {1, 3, 4}, int64[1] rest = {-1}>"
)

IF = (
    "y = If(c) <then_branch = t () => (float a) {{a = Relu(x)}}, "
    "else_branch = e () => (float b) {{b = {}}}>"
)

CASES: list[tuple[str, str, Any, Any]] = [
    ("joined", "y = Concat<axis = 0>(x, x)", ["2*N", 3, 4], None),
    ("flattened", "y = Flatten(x)", ["N", 12], None),
    ("shape", "y = Shape(x)", [3], ["N", 3, 4]),
    ("size", "y = Size(x)", [], ["12*N"]),
    ("element", "s = Shape(x) i = Constant<value_int = 0>() y = Gather<axis = 0>(s, i)", [], ["N"]),
    ("pooled", "y = MaxPool<kernel_shape = [2], strides = [2]>(x)", ["N", 3, 2], None),
    (
        "divided by a sum",
        (
            "e = ConstantOfShape(unit) z = Concat<axis = 0>(x, e) s = Shape<end = 1>(z) "
            "t = Concat<axis = 0>(s, rest) y = Reshape(z, t)"
        ),
        ["N + 1", 12],
        None,
    ),
    ("unknown", "y = NonZero(x)", [3, "NonZero_0/0/0:1"], None),
    ("choice", IF.format("Neg(x)"), ["N", 3, 4], None),
    ("two sizes", IF.format("Concat<axis = 1>(x, x)"), ["N", "If_0/0/0:1", 4], None),
    ("call", "y = l.twice(x)", ["N", 3, 8], None),
    (
        "indices of two axes",
        (
            "i = Constant<value = int64[2, 3] {0, 1, 2, 3, 0, 1}>() "
            "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)"
        ),
        ["N", 3, 6],
        None,
    ),
    (
        "lowest number",
        "s = Shape(x) l = Cast<to = 7>(low) y = Concat<axis = 0>(s, l)",
        [4],
        ["N", 3, 4, -(2**63)],
    ),
    (
        "lowest number, divided",
        "m = Constant<value_int = -1>() y = Div(low, m)",
        [1],
        [None],
    ),
    ("two values", "y = Constant<value_float = 0.5, value_int = -1>()", None, None),
    ("malformed", "y = Transpose<perm = [0, 0, 7]>(x)", None, None),
]  # fmt: skip

FUNCTION = '<domain: "l", opset_import: ["": 17]> twice (a) => (b) {b = Concat<axis = -1>(a, a)}'


@pytest.mark.parametrize(
    ("body", "dims", "items"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_facts_of_results(body: str, dims: Any, items: Any) -> None:
    model = onnx.parser.parse_model(f"{HEAD} {{ {body} }} {FUNCTION}")
    read = read_bytes(model.SerializeToString())
    facts = _core.GraphFacts(read.template.file, read.graph, {"": 17, "l": 1}, {})
    *_, last = facts.listed()
    assert last[0][2] == dims
    assert last[0][3] == items


def test_a_value_that_a_loop_makes_a_sequence_has_no_type() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 16]>
        g (int64 n, bool c, optional(seq(float)) o) => (y) {
            y = Loop (n, c, o) <body: graph = b (int64 i, bool d, optional(seq(float)) p) => (e, q)
                { e = Identity(d) f = Constant<value_float = 0.5>() q = SequenceConstruct(f) }>
        }"""
    )
    read = read_bytes(model.SerializeToString())
    facts = _core.GraphFacts(read.template.file, read.graph, {"": 16}, {})
    *_, ((code, containers, *_),) = facts.listed()
    assert (code, containers) == (0, "")
