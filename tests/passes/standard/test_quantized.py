"""fuseDequantize between quantized values: what moves integers, and that no number changes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rewriting import after, operators, parsed, results

HEAD = '<ir_version: 10, opset_import: ["" : 19]> '
CONSTANTS = "float s = {0.5}, float r = {0.25}, uint8 z = {3}, uint8 o = {4}, int8 i = {-5}"
FIRST = "a = DequantizeLinear(q, s, z)"


class Case(NamedTuple):
    """What is between the first DequantizeLinear and the result y, and what remains."""

    text: str
    left: dict[str, int] | None
    """The operators after the pass; None for the same as before."""
    dtype: str = "uint8"


PADS = "int64[8] pads = {0, 0, 1, 0, 0, 0, 0, 2}"

CASES = {
    "a turned shape": Case(
        "c = Constant<value_ints = [8, 6]>() b = Reshape(a, c) d = Transpose(b) "
        "y = QuantizeLinear(d, s, z)", {"Reshape": 1, "Transpose": 1},
    ),
    "a turned part": Case(
        "c = Constant<value_ints = [1]>() e = Constant<value_ints = [3]>() b = Slice(a, c, e, c) "
        "d = Transpose<perm = [0, 2, 1, 3]>(b) y = QuantizeLinear(d, s, z)",
        {"Slice": 1, "Transpose": 1},
    ),
    "another scale": Case(
        "b = Flatten(a) d = Transpose(b) y = QuantizeLinear(d, r, z)", None,
    ),
    "another zero point": Case(
        "b = Flatten(a) d = Transpose(b) y = QuantizeLinear(d, s, o)", None,
    ),
    "two joined": Case(
        "e = DequantizeLinear(p, s, z) b = Concat<axis = -3>(a, e) y = QuantizeLinear(b, s, z)",
        {"Concat": 1},
    ),
    "three joined": Case(
        "e = DequantizeLinear(p, s, z) f = DequantizeLinear(p, s, z) b = Concat<axis = 1>(a, e, f) "
        "y = QuantizeLinear(b, s, z)",
        {"Concat": 1},
    ),
    "joined of other scales": Case(
        "e = DequantizeLinear(p, r, z) b = Concat<axis = 1>(a, e) y = QuantizeLinear(b, s, z)",
        None,
    ),
    "largest": Case(
        "b = MaxPool<kernel_shape = [2, 2], pads = [1, 0, 1, 1], strides = [2, 1]>(a) "
        "y = QuantizeLinear(b, s, z)", {"MaxPool": 1},
    ),
    "largest of signed numbers": Case(
        "b = MaxPool<kernel_shape = [2, 2], pads = [1, 1, 0, 0], ceil_mode = 1, "
        "strides = [3, 2]>(a) y = QuantizeLinear(b, s, i)", {"MaxPool": 1}, "int8",
    ),
    "largest and its place": Case(
        "b, k = MaxPool<kernel_shape = [2, 2]>(a) h = Cast<to = 1>(k) "
        "l = ReduceMax<keepdims = 0>(h) m = Add(b, l) y = QuantizeLinear(m, s, z)", None,
    ),
    "padded": Case("b = Pad(a, pads) y = QuantizeLinear(b, s, z)", {"Pad": 1}),
    "padded signed numbers": Case(
        "k = Constant<value = float {0}>() b = Pad(a, pads, k) y = QuantizeLinear(b, s, i)",
        {"Pad": 1}, "int8",
    ),
    "padded with another number": Case(
        "k = Constant<value = float {2}>() b = Pad(a, pads, k) y = QuantizeLinear(b, s, z)", None,
    ),
    "padded with the edge": Case(
        'b = Pad<mode = "edge">(a, pads) y = QuantizeLinear(b, s, z)', None,
    ),
    "two pairs": Case(
        "b = QuantizeLinear(a, s, z) c = DequantizeLinear(b, s, z) d = QuantizeLinear(c, s, z) "
        "e = DequantizeLinear(d, s, z) y = QuantizeLinear(e, s, z)", {"Identity": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_integers_move_between_equal_scales(name: str, tmp_path: Path) -> None:
    text, left, dtype = CASES[name]
    first = FIRST if dtype == "uint8" else FIRST.replace("z)", "i)")
    data = parsed(
        f"{HEAD}g ({dtype}[1, 2, 4, 6] q, {dtype}[1, 1, 4, 6] p) => ({dtype}[...] y) "
        f"<{CONSTANTS}, {PADS}> {{ {first} {text} }}".replace("[...]", "")
    )
    made = after(data, "fuseDequantize", tmp_path)
    expected = operators(data) if left is None else left
    assert {op: n for op, n in operators(made).items() if op != "Cast"} == {
        op: n for op, n in expected.items() if op != "Cast"
    }
    bounds = np.iinfo(dtype)
    random = np.random.default_rng(0)
    for _ in range(3):
        feeds = {
            name: random.integers(bounds.min, bounds.max + 1, shape).astype(dtype)
            for name, shape in (("q", (1, 2, 4, 6)), ("p", (1, 1, 4, 6)))
        }
        np.testing.assert_array_equal(results(made, feeds)[0], results(data, feeds)[0])
