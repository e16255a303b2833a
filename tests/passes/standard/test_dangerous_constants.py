"""Constants at which ONNX Runtime ends its process: those without elements, and some numbers.

``make sweep-empty`` tries the operators that are run in passlib's own process.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib
from commands import passlib_command
from rewriting import operators, parsed, results

GRU = """w = ConstantOfShape(ws) r = ConstantOfShape(rs) a = ConstantOfShape(as)
    b, y = GRU<hidden_size = 2>(a, w, r)"""
SIZES = "int64[3] ws = {1, 6, 3}, int64[3] rs = {1, 6, 2}, int64[3] as = {0, 1, 3}"
LSTM = GRU.replace("GRU", "LSTM").replace("b, y", "b, y, c")

MODELS = {
    "GRU": f"g () => (float[A, B, C] y) <{SIZES}> {{ {GRU} }}",
    "GRU without channels": f"g () => (float[A, B, C] y) <{SIZES}> {{ {GRU} }}".replace(
        "{1, 6, 3}", "{1, 6, 0}"
    ).replace("{0, 1, 3}", "{2, 1, 0}"),
    "GRU without batch": f"g () => (float[A, B, C] y) <{SIZES}> {{ {GRU} }}".replace(
        "{0, 1, 3}", "{2, 0, 3}"
    ),
    "LSTM": f"g () => (float[A, B, C] y) <{SIZES.replace(' 6,', ' 8,')}> {{ {LSTM} }}",
    "in a branch": f"""g (bool k) => (float[A, B, C] z) <{SIZES}, bool t = {{1}}> {{
        z = If(t) <then_branch = p () => (y) {{ {GRU} }},
                   else_branch = q () => (y) {{ y = ConstantOfShape(as) }}> }}""",
    "sizes that only a run tells": f"""g () => (float[A, B, C] y)
        <{SIZES.replace("as = {0, 1, 3}", "bs = {0, 0, 0}")}, int64[3] e = {{1, 1, 3}}> {{
        n = NonZero(bs) m = Transpose(n) o = Shape(m) h = Gather(o, i) j = Concat<axis = 0>(h, f)
        w = ConstantOfShape(ws) r = ConstantOfShape(rs) a = ConstantOfShape(j)
        b, y = GRU<hidden_size = 2>(a, w, r) }}""".replace(
        "int64[3] e = {1, 1, 3}", "int64[1] i = {0}, int64[2] f = {1, 3}"
    ),
    "the smallest number divided by -1": """g () => (int64[A] y)
        <int64[1] a = {-9223372036854775808}, int64[1] b = {-1}> { y = Div(a, b) }""",
    "computed numbers": """g () => (int64[A] y)
        <int64[1] a = {-9223372036854775808}, int64[1] b = {1}> { c = Neg(b) y = Div(a, c) }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_the_process_goes_on(name: str, tmp_path: Path) -> None:
    model = tmp_path / "in.onnx"
    model.write_bytes(parsed(MODELS[name]))
    for passes in ("simplify", "clean"):
        done = passlib_command("opt", model, "-o", tmp_path / "out.onnx", "--passes", passes)
        assert done.returncode == 0, done.stderr
    assert onnx.load(tmp_path / "out.onnx").graph.output


def test_others_are_folded_beside() -> None:
    data = parsed(
        f"""g () => (float[A, B, C] y, float[A, B] z)
        <{SIZES}, float[2, 2] p = {{1, 2, 3, 4}}> {{ {GRU} q = Gemm(p, p) z = Cos(q) }}"""
    )
    made = passlib.simplify(data)
    assert {"Gemm", "Cos"}.isdisjoint(node.op for node in made.symbol.graph.nodes())


def test_a_process_of_its_own_returns_the_same_numbers(tmp_path: Path) -> None:
    """A Loop with an operator that may end the process, and with sizes that are above 0."""
    data = parsed(
        """g () => (float[A, B] y) <float[2, 2] p = {1, 2, 3, 4}, int64 n = {3}> {
        y = Loop(n, , p) <body = b (int64 i, bool c, float[2, 2] s) => (bool d, float[2, 2] t) {
            d = Identity(c) u = Gemm(s, p) v = Add(u, p) t = Mul(v, p) }> }"""
    )
    made = tmp_path / "made.onnx"
    passlib.simplify(data).save(made)
    assert "Loop" not in operators(made.read_bytes())
    np.testing.assert_array_equal(results(made.read_bytes(), {})[0], results(data, {})[0])


@pytest.mark.parametrize(
    ("count", "stays"),
    [("3", False), ("1000", False), ("9000000000000", True), (f"{2**63 - 1}", True)],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_loop_that_does_not_end_soon_is_not_computed(
    count: str, stays: bool, nested: bool, tmp_path: Path
) -> None:
    loop = """y = Loop(n, t, p) <body = b (int64 i, bool c, int64 s) => (bool d, int64 u) {
        d = Identity(c) u = Add(s, p) }>"""
    if nested:
        loop = f"""y = Loop(one, t, p) <body = o (int64 j, bool g, int64 q) => (bool h, int64 y) {{
            h = Identity(g) {loop} }}>"""
    data = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float x) => (int64 y)
        <int64 n = {{{count}}}, int64 one = {{1}}, int64 p = {{1}}, bool t = {{1}}> {{ {loop} }}"""
    )
    made = tmp_path / "made.onnx"
    passlib.simplify(passlib.load(data)).save(made)
    assert ("Loop" in operators(made.read_bytes())) == stays
