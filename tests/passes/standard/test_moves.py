"""Passes about operators that only move elements, and about sizes, states and scales."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results, weights

I1, I2 = "int64[1]", "int64[2]"

CASES: dict[str, tuple[str, str, str, dict[str, int]]] = {
    "Reshape behind Reshape": (
        "mergeReshapes",
        f"<{I2} a = {{-1, 4}}, {I2} b = {{3, -1}}> {{ s = Reshape(x, a) y = Reshape(s, b) }}",
        "float[6, 2] x",
        {"Reshape": 1},
    ),
    "Unsqueeze, Reshape and Squeeze with an open size": (
        "mergeReshapes",
        (f"<{I1} a = {{1}}, int64[3] b = {{-1, 4, 1}}, {I1} c = {{2}}>"
        "{ m = Neg(x) s = Unsqueeze(m, a) t = Reshape(s, b) y = Squeeze(t, c) }"),
        "float[N, 4] x",
        {"Neg": 1},
    ),
    "Transpose of an axis of size 1": (
        "mergeReshapes",
        f"<{I1} a = {{1}}> {{ s = Transpose <perm = [0, 2, 1]> (x) y = Squeeze(s, a) }}",
        "float[N, 4, 1] x",
        {"Squeeze": 1},
    ),
    "Transpose of an axis of size 1 that goes": (
        "mergeReshapes",
        f"<{I1} a = {{2}}> {{ s = Transpose <perm = [0, 2, 1]> (x) y = Squeeze(s, a) }}",
        "float[N, 1, 4] x",
        {"Squeeze": 1},
    ),
    "a maximum of one": (
        "mergeReshapes",
        (f"<{I1} a = {{1}}> {{ m = Neg(x) s = ReduceMax <axes = [1], keepdims = 0> (m)"
        " y = Unsqueeze(s, a) }"),
        "float[N, 1] x",
        {"Neg": 1},
    ),
    "an open size that is 0, for which Reshape takes the size that is there": (
        "foldShapes",
        (
            f"<{I1} a = {{1}}, {I1} m = {{-1}}> {{ s = Shape(x) g = Gather(s, a)"
            " l = Concat <axis = 0> (g, m) r = Reshape(x, l) t = Shape(r) y = Reshape(r, t) }"
        ),
        "float[4, N] x",
        {"Shape": 1, "Gather": 1, "Concat": 1, "Reshape": 2},
    ),
    "two open sizes that move": (
        "mergeReshapes",
        f"<{I1} a = {{0}}> {{ s = Unsqueeze(x, a) t = Shape(z) y = Reshape(s, t) }}",
        "float[N, M] x, float[M, N] z",
        {"Unsqueeze": 1, "Shape": 1, "Reshape": 1},
    ),
    "Transpose behind Transpose": (
        "cancelTransposes",
        "{ s = Transpose <perm = [1, 2, 0]> (x) y = Transpose <perm = [0, 2, 1]> (s) }",
        "float[N, 3, 4] x",
        {"Transpose": 1},
    ),
    "Transpose and back": (
        "cancelTransposes",
        "{ t = Neg(x) s = Transpose(t) r = Transpose(s) y = Neg(r) }",
        "float[N, 3, 4] x",
        {"Neg": 2},
    ),
    "Transpose between Reshapes that merge and split": (
        "cancelTransposes",
        ("<int64[3] a = {-1, 4, 5}, int64[4] b = {2, 3, 5, 4}>"
        "{ s = Reshape(x, a) t = Transpose <perm = [0, 2, 1]> (s) y = Reshape(t, b) }"),
        "float[2, 3, 4, 5] x",
        {"Transpose": 1},
    ),
    "Transpose between Reshapes that do something else": (
        "cancelTransposes",
        ("<int64[3] a = {-1, 4, 5}, int64[4] b = {3, 2, 5, 4}>"
        "{ s = Reshape(x, a) t = Transpose <perm = [0, 2, 1]> (s) y = Reshape(t, b) }"),
        "float[2, 3, 4, 5] x",
        {"Reshape": 2, "Transpose": 1},
    ),
    "Slice of another axis": (
        "mergeSlices",
        (f"<{I1} a = {{1}}, {I1} b = {{3}}, {I1} c = {{0}}, {I1} d = {{1}}, {I1} e = {{-1}}>"
        "{ s = Slice(x, a, b, c) y = Slice(s, a, b, e, d) }"),
        "float[N, 4] x",
        {"Slice": 1},
    ),
    "Slice of the same axis": (
        "mergeSlices",
        (f"<{I1} a = {{1}}, {I1} b = {{9223372036854775807}}, {I1} c = {{0}}, {I1} d = {{2}}>"
        "{ s = Slice(x, a, b, c) y = Slice(s, d, b, c) }"),
        "float[N, 4] x",
        {"Slice": 1},
    ),
    "three Slices": (
        "mergeSlices",
        (
            f"<{I1} a = {{1}}, {I1} b = {{9}}, {I1} c = {{0}}, {I1} d = {{1}}>"
            "{ s = Slice(x, a, b, c) t = Slice(s, a, b, d) y = Slice(t, a, b, c) }"
        ),
        "float[N, 4] x",
        {"Slice": 1},
    ),
    "Slice from the end": (
        "mergeSlices",
        (f"<{I1} a = {{-2}}, {I1} b = {{9}}, {I1} c = {{0}}>"
        "{ s = Slice(x, a, b, c) y = Slice(s, a, b, c) }"),
        "float[N, 4] x",
        {"Slice": 2},
    ),
    "Slices of all": (
        "mergeSlices",
        (f"<{I1} a = {{0}}, {I1} b = {{3}}, {I1} c = {{1}}, {I1} d = {{99}}>"
        "{ s = Slice(x, b, d, c) t = Slice(x, a, b, c) u = Neg(s) v = Neg(t)"
        "  y = Concat <axis = 1> (u, v) }"),
        "float[N, 5] x",
        {"Split": 1, "Neg": 2, "Concat": 1},
    ),
    "Slices of all of a part of all": (
        "mergeSlices",
        (
            f"<{I1} a = {{0}}, {I1} b = {{2}}, {I1} c = {{1}}, {I1} d = {{5}}, {I1} z = {{0}}>"
            "{ s = Slice(x, a, b, c) t = Slice(x, b, d, c) m = Slice(s, a, c, z)"
            "  n = Slice(s, c, d, z) u = Neg(m) v = Neg(n)"
            "  w = Concat <axis = 0> (u, v) y = Concat <axis = 1> (t, w) }"
        ),
        "float[3, 5] x",
        {"Split": 2, "Neg": 2, "Concat": 2},
    ),
    "Slices with something in between": (
        "mergeSlices",
        (f"<{I1} a = {{0}}, {I1} b = {{2}}, {I1} c = {{1}}, {I1} d = {{5}}, {I1} e = {{3}}>"
        "{ s = Slice(x, e, d, c) t = Slice(x, a, b, c) y = Add(s, t) }"),
        "float[N, 5] x",
        {"Slice": 2, "Add": 1},
    ),
    "Gather of one index that keeps its axis": (
        "mergeSlices",
        (f"<int64 a = {{-1}}, {I1} b = {{1}}>"
        "{ s = Gather <axis = 1> (x, a) y = Unsqueeze(s, b) }"),
        "float[N, 5, M] x",
        {"Slice": 1},
    ),
    "halves of which parts are taken": (
        "mergeSlices",
        (f"<{I1} a = {{0}}, {I1} b = {{2}}, {I1} c = {{4}}, {I1} d = {{1}}, {I1} e = {{3}}>"
        "{ s = Slice(x, a, b, d) t = Slice(x, b, c, d) u = Slice(s, d, e, a)"
        "  v = Slice(t, d, e, a) y = Add(u, v) }"),
        "float[N, 4] x",
        {"Slice": 2, "Add": 1},
    ),
    "halves of which one is taken whole": (
        "mergeSlices",
        (f"<{I1} a = {{0}}, {I1} b = {{2}}, {I1} c = {{4}}, {I1} d = {{1}}, {I1} e = {{3}}>"
        "{ s = Slice(x, a, b, d) t = Slice(x, b, c, d) u = Slice(s, d, e, a)"
        "  v = Neg(t) y = Concat <axis = 0> (u, v) }"),
        "float[N, 4] x",
        {"Split": 1, "Slice": 1, "Neg": 1, "Concat": 1},
    ),
    "Gather of an index of an open size": (
        "mergeSlices",
        (f"<int64 a = {{1}}, {I1} b = {{0}}>"
        "{ s = Gather <axis = 0> (x, a) y = Unsqueeze(s, b) }"),
        "float[N, 5] x",
        {"Gather": 1, "Unsqueeze": 1},
    ),
    "Concat of Concat": (
        "mergeConcats",
        "{ s = Neg(x) t = Concat <axis = 1> (x, s) y = Concat <axis = -2> (s, t, x) }",
        "float[N, 5, M] x",
        {"Neg": 1, "Concat": 1},
    ),
    "Concat of Concat on another axis": (
        "mergeConcats",
        "{ s = Neg(x) t = Concat <axis = 0> (x, s) y = Concat <axis = 1> (t, t) }",
        "float[N, 5] x",
        {"Neg": 1, "Concat": 2},
    ),
    "sizes that are there": (
        "rebuildShapes",
        (f"<int64 a = {{0}}, int64 b = {{1}}, {I1} c = {{0}}, {I1} d = {{-1}}>"
        "{ s = Shape(x) t = Gather(s, a) u = Gather(s, b) v = Unsqueeze(t, c) w = Unsqueeze(u, c)"
        "  l = Concat <axis = 0> (v, w, d) y = Reshape(x, l) }"),
        "float[N, M, 2, 3] x",
        {"Shape": 1, "Concat": 1, "Reshape": 1},
    ),
    "sizes that are there twice": (
        "rebuildShapes",
        (f"<int64 a = {{0}}, {I1} c = {{0}}, {I1} d = {{-1}}>"
        "{ s = Shape(x) t = Gather(s, a) v = Unsqueeze(t, c) l = Concat <axis = 0> (v, d)"
        "  m = Concat <axis = 0> (v, d) p = Reshape(x, l) q = Reshape(x, m) y = Add(p, q) }"),
        "float[N, 2] x",
        {"Shape": 1, "Concat": 1, "Reshape": 2, "Add": 1},
    ),
    # The second size is that of a value that needs it.
    "sizes of a later value": (
        "rebuildShapes",
        (f"<{I2} f = {{1, 2}}>"
        "{ s = Shape(x) l = Mul(s, f) z = ConstantOfShape(l) y = Neg(z) }"),
        "float[N, M] x",
        {"Shape": 1, "Mul": 1, "ConstantOfShape": 1, "Neg": 1},
    ),
    "sizes of more axes than are taken apart": (
        "rebuildShapes",
        (f"<int64 a = {{0}}, {I1} c = {{0}}, int64[8] d = {{1, 1, 1, 1, 1, 1, 1, 1}}>"
        "{ s = Shape(x) t = Gather(s, a) v = Unsqueeze(t, c) l = Concat <axis = 0> (v, d)"
        "  y = Reshape(x, l) }"),
        "float[N] x",
        {"Shape": 1, "Gather": 1, "Unsqueeze": 1, "Concat": 1, "Reshape": 1},
    ),
    "integers with a scale for each row": (
        "fuseDequantize",
        ("<int8[2, 3] w = {-128, 0, 127, 1, -1, 5}, float[2, 1] f = {-0.5, 3}>"
        "{ s = Cast <to = 1> (w) t = Mul(f, s) y = MatMul(t, x) }"),
        "float[3, N] x",
        {"DequantizeLinear": 1, "MatMul": 1},
    ),
    "integers with one scale": (
        "fuseDequantize",
        ("<uint8[2, 3] w = {0, 255, 127, 1, 3, 5}, float[1, 1] f = {0.1}>"
        "{ s = Cast <to = 1> (w) t = Mul(s, f) y = MatMul(t, x) }"),
        "float[3, N] x",
        {"DequantizeLinear": 1, "MatMul": 1},
    ),
    # ONNX Runtime would round x to 8 bits.
    "integers of a product": (
        "fuseDequantize",
        ("<int8[2, 3] w = {-128, 0, 127, 1, -1, 5}, float f = {0.1}>"
        "{ s = Cast <to = 1> (w) t = Mul(s, f) y = MatMul(x, t) }"),
        "float[N, 2] x",
        {"Cast": 1, "Mul": 1, "MatMul": 1},
    ),
    "integers of a Gemm": (
        "fuseDequantize",
        ("<int8[2, 3] w = {-128, 0, 127, 1, -1, 5}, float f = {0.1}>"
        "{ s = Cast <to = 1> (w) t = Mul(s, f) y = Gemm(x, t) }"),
        "float[N, 2] x",
        {"Cast": 1, "Mul": 1, "Gemm": 1},
    ),
    "integers with a scale for each": (
        "fuseDequantize",
        ("<int8[2, 2] w = {-128, 0, 127, 1}, float[2, 2] f = {0.5, 3, 1, 2}>"
        "{ s = Cast <to = 1> (w) t = Mul(s, f) y = MatMul(x, t) }"),
        "float[N, 2] x",
        {"Cast": 1, "Mul": 1, "MatMul": 1},
    ),
}  # fmt: skip


def special(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return numbers with nan, infinities and both zeros among them."""
    numbers = np.arange(np.prod(shape), dtype=np.float32) - 3
    for place, number in enumerate((np.nan, np.inf, -np.inf, -0.0)):
        numbers[place * 3 + 1 :: 17] = number
    return numbers.reshape(shape)


def fed(data: bytes, n: int) -> dict[str, Any]:
    """Return inputs in which the open size N is a number, and M the next one."""
    sizes = {"N": n, "M": n + 1}
    made = {}
    for value in onnx.ModelProto.FromString(data).graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = tuple(sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims)
        made[value.name] = special(shape)
    return made


def outcome(data: bytes, feeds: dict[str, Any]) -> list[Any] | None:
    """Return the results, None if the model fails."""
    try:
        return results(data, feeds)
    except Exception:
        return None


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_computes_the_same(name: str, tmp_path: Path) -> None:
    pass_name, body, inputs, expected = CASES[name]
    data = parsed(f"g ({inputs}) => (float y) {body}")
    made = after(data, pass_name, tmp_path)
    assert operators(made) == expected
    for n in (0, 1, 2, 4):
        feeds = fed(data, n)
        want, have = outcome(data, feeds), outcome(made, feeds)
        assert (want is None) == (have is None), n
        if want is not None and have is not None:
            assert same_bits(have, want)


@pytest.mark.parametrize(
    ("opset", "parts"),
    [(9, {"Slice": 1}), (10, {"Slice": 1}), (14, {"Slice": 1}), (15, {}), (21, {})],
)
def test_parts_of_shapes(opset: int, parts: dict[str, int], tmp_path: Path) -> None:
    """Shape returns a part itself from operator set 15 on, and Slice has attributes before 10."""
    data = parsed(
        f"""<ir_version: 8, opset_import: ["" : {opset}]> g (float[3, N, 2, M] x) => (float y)
        <{I1} a = {{1}}, {I1} b = {{2}}, {I1} c = {{3}}>
        {{
          s = Shape(x) n = Gather <axis = 0> (s, a) two = Gather <axis = 0> (s, b)
          m = Gather <axis = 0> (s, c) l = Concat <axis = 0> (n, two, m) y = ConstantOfShape(l)
        }}"""
    )
    made = after(data, "rebuildShapes", tmp_path)
    assert operators(made) == {"Shape": 1, "ConstantOfShape": 1} | parts
    x = np.zeros((3, 4, 2, 5), np.float32)
    assert same_bits(results(made, {"x": x}), results(data, {"x": x}))


STATES = {
    "zeros of the batch's size": ("s = ConstantOfShape(l)", "", True),
    "zeros that are cut out": (
        "e = Expand(zero, m) s = Slice(e, one, two, first)",
        "float zero = {0}",
        True,
    ),
    "negative zeros": ("s = Expand(zero, l)", "float zero = {-0.0}", False),
    "ones": ("s = Expand(zero, l)", "float zero = {1}", False),
    "zeros of a fixed size": ("s = Identity(fixed)", "float[1, 2, 2] fixed = {0, 0, 0, 0}", False),
}


@pytest.mark.parametrize("name", STATES)
def test_states_that_are_zero(name: str, tmp_path: Path) -> None:
    body, constants, gone = STATES[name]
    both = ", ".join(filter(None, (weights("w", 1, 8, 3), weights("r", 1, 8, 2), constants)))
    data = parsed(
        f"""g (float[T, N, 3] x) => (float[T, 1, N, 2] y, float[1, N, 2] h) <{both},
        int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] first = {{0}}>
        {{
          n = Shape <start = 1, end = 2> (x) l = Concat <axis = 0> (one, n, two)
          m = Concat <axis = 0> (two, n, two) {body}
          y, h, c = LSTM <hidden_size = 2> (x, w, r, , , s, s)
        }}"""
    )
    made = after(data, "dropZeroStates", tmp_path)
    lstm = next(
        node for node in onnx.ModelProto.FromString(made).graph.node if node.op_type == "LSTM"
    )
    assert (len(lstm.input) == 3) == gone
    for n in (1, 2):
        x = np.random.default_rng(n).standard_normal((4, n, 3)).astype(np.float32)
        want, have = outcome(data, {"x": x}), outcome(made, {"x": x})
        assert (want is None) == (have is None)
        if want is not None and have is not None:
            assert same_bits(have, want)


@pytest.mark.parametrize(
    ("state", "gone"), [("5, 1, 2", True), ("1, 5, 2", False), ("4, 1, 2", False)]
)
def test_states_of_batches_that_come_first(state: str, gone: bool, tmp_path: Path) -> None:
    """ONNX Runtime has no kernel for layout 1."""
    count = np.prod([int(size) for size in state.split(", ")])
    zeros = f"float[{state}] s = {{{', '.join(['0'] * count)}}}"
    data = parsed(
        f"""g (float[5, 4, 3] x) => (float[5, 4, 1, 2] y) <{zeros}, {weights("w", 1, 8, 3)},
        {weights("r", 1, 8, 2)}>
        {{ y, h, c = LSTM <hidden_size = 2, layout = 1> (x, w, r, , , s, s) }}"""
    )
    lstm = onnx.ModelProto.FromString(after(data, "dropZeroStates", tmp_path)).graph.node[-1]
    assert (len(lstm.input) == 3) == gone


@pytest.mark.parametrize(
    ("opset", "summand", "fused"),
    [
        (13, "float[2, 3] s = {1, 2, 3, 4, 5, 6}", True),
        (13, "float[3] s = {1, 2, 3}", True),
        (13, "float[1] s = {1}", True),
        (13, "float s = {1}", False),
        (13, "float[1, 2, 3] s = {1, 2, 3, 4, 5, 6}", False),
        (6, "float[2, 3] s = {1, 2, 3, 4, 5, 6}", False),
        (7, "float[2, 3] s = {1, 2, 3, 4, 5, 6}", True),
    ],
)
def test_products_that_become_gemm(opset: int, summand: str, fused: bool, tmp_path: Path) -> None:
    """A Gemm of operator set 6 says itself whether it broadcasts; ONNX has none of rank 0."""
    data = parsed(
        f"""<ir_version: 4, opset_import: ["" : {opset}]> g (float[2, 4] x) => (float y)
        <{weights("w", 4, 3)}, {summand}> {{ p = MatMul(x, w) y = Add(p, s) }}"""
    )
    wanted = {"Gemm": 1} if fused else {"MatMul": 1, "Add": 1}
    assert operators(after(data, "fuseMatMulAdd", tmp_path)) == wanted


FOCUS = """g (float[N, 3, H, W] x) => (float y) <CONSTANTS, int64[1] zero = {0}, int64[1] one = {1},
  int64[1] end = {2147483647}, int64[1] two = {2}, int64[1] three = {3}>
{
  a = Slice(x, zero, end, two, two) b = Slice(x, one, end, two, two)
  c = Slice(a, zero, end, three, two) d = Slice(b, zero, end, three, two)
  e = Slice(a, one, end, three, two) f = Slice(b, one, end, three, two)
  g = Concat <axis = 1> (c, d, e, f) y = Conv(g, w)
}""".replace("CONSTANTS", weights("w", 2, 12, 1, 1))


@pytest.mark.parametrize("reorder", [True, False])
def test_focus(reorder: bool, tmp_path: Path) -> None:
    data = parsed(FOCUS)
    made = after(data, "fuseSpaceToDepth", tmp_path, reorder_weights=reorder)
    assert operators(made) == {"SpaceToDepth": 1, "Conv": 1} | ({} if reorder else {"Gather": 1})
    for height, width in ((2, 4), (6, 2), (3, 4), (0, 2)):
        x = np.random.default_rng(3).standard_normal((2, 3, height, width)).astype(np.float32)
        want, have = outcome(data, {"x": x}), outcome(made, {"x": x})
        assert (want is None) == (have is None)
        if want is not None and have is not None:
            np.testing.assert_allclose(have[0], want[0], rtol=1e-5)
            assert reorder or same_bits(have, want)


def test_focus_of_integers_stays(tmp_path: Path) -> None:
    """ONNX Runtime computes SpaceToDepth for floats alone."""
    text = FOCUS.replace("float[N, 3, H, W]", "int64[N, 3, H, W]").replace("(float y)", "(int64 g)")
    data = parsed(text.replace("y = Conv(g, w)", ""))
    made = after(data, "fuseSpaceToDepth", tmp_path)
    assert operators(made) == {"Slice": 6, "Concat": 1}


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_weights_of_focus(dtype: Any, tmp_path: Path) -> None:
    """SpaceToDepth returns the Slices in the order c, e, d, f."""
    model = onnx.ModelProto.FromString(parsed(FOCUS))
    weight = np.arange(2 * 12 * 3).reshape(2, 12, 3, 1).astype(dtype)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    model.graph.input[0].type.tensor_type.elem_type = model.graph.initializer[0].data_type
    model.graph.output[0].type.tensor_type.elem_type = model.graph.initializer[0].data_type
    made = after(model.SerializeToString(), "fuseSpaceToDepth", tmp_path, reorder_weights=True)
    (reordered,) = onnx.ModelProto.FromString(made).graph.initializer
    parts = weight.reshape(2, 4, 3, 3, 1)[:, [0, 2, 1, 3]]
    assert np.array_equal(onnx.numpy_helper.to_array(reordered), parts.reshape(weight.shape))


def test_focus_of_too_many_channels_stays(tmp_path: Path) -> None:
    text = FOCUS.replace("float[N, 3, H, W]", f"float[N, {1 << 40}, H, W]")
    data = parsed(text.replace("y = Conv(g, w)", "y = Neg(g)"))
    made = after(data, "fuseSpaceToDepth", tmp_path)
    assert operators(made) == {"Slice": 6, "Concat": 1, "Neg": 1}


def test_factors_and_summands(tmp_path: Path) -> None:
    data = parsed(
        """g (float[N, 3] x) => (float[N, 3] y) <float two = {2}, float[3] c = {1, 2, 3}>
        { a = Mul(x, two) b = Mul(c, a) d = Add(b, two) y = Add(d, c) }"""
    )
    made = after(data, "mergeFactors", tmp_path)
    assert operators(made) == {"Mul": 1, "Add": 1}
    x = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_allclose(results(made, {"x": x})[0], results(data, {"x": x})[0], rtol=1e-6)


FACTORS = {
    "a row and a column, whose product is larger": ("[1, 3]", "{2, 3, 4}", "[2, 1]", "{5, 6}", 2),
    "a row and a matrix": ("[3]", "{2, 3, 4}", "[2, 3]", "{1, 2, 3, 4, 5, 6}", 1),
    "a column and a matrix": ("[2, 3]", "{1, 2, 3, 4, 5, 6}", "[2, 1]", "{5, 6}", 1),
    "a plane and a matrix": ("[1, 2, 1]", "{5, 6}", "[1, 2, 3]", "{1, 2, 3, 4, 5, 6}", 1),
    "constants of another rank": ("[1, 1, 1]", "{5}", "[3]", "{2, 3, 4}", 2),
    "constants without elements": ("[0]", "{}", "[1]", "{2}", 1),
}


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("case", FACTORS)
def test_shapes_of_factors(case: str, op: str, tmp_path: Path) -> None:
    first, elements, second, others, left = FACTORS[case]
    last = 0 if case == "constants without elements" else 3
    data = parsed(
        f"g (float[N, 2, {last}] x) => (float[N, 2, {last}] y)"
        f"<float{first} a = {elements}, float{second} b = {others}>"
        f"{{ s = {op}(x, a) y = {op}(s, b) }}"
    )
    made = after(data, "mergeFactors", tmp_path)
    assert operators(made) == {op: left}
    x = np.random.default_rng(3).standard_normal((2, 2, last)).astype(np.float32)
    np.testing.assert_allclose(results(made, {"x": x})[0], results(data, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("order", [[0, 0, 1], [0, 1, 7], [0, 1, -1], [1, 0], list(range(10_000))])
def test_impossible_permutations_stay(order: list[int], tmp_path: Path) -> None:
    data = parsed(
        f"g (float[2, 1, N] x) => (float y) <{I1} a = {{-1}}>"
        f"{{ s = Transpose <perm = {order}> (x) y = Reshape(s, a) }}"
    )
    assert operators(after(data, "mergeReshapes", tmp_path)) == {"Transpose": 1, "Reshape": 1}


def test_summands_that_take_digits_from_each_other_stay(tmp_path: Path) -> None:
    data = parsed(
        """g (float[N] x) => (float[N] y) <float c = {1000}, float d = {-999.999}>
        { a = Add(x, c) y = Add(a, d) }"""
    )
    assert operators(after(data, "mergeFactors", tmp_path)) == {"Add": 2}


@pytest.mark.parametrize("factor", ["1e30", "0", "1e-30"])
def test_extreme_factors_stay(factor: str, tmp_path: Path) -> None:
    data = parsed(
        "g (float[N] x) => (float[N] y) { a = Mul(x, c) y = Mul(a, c) }".replace(
            "{ a", "<float c = {" + factor + "}> { a"
        )
    )
    assert operators(after(data, "mergeFactors", tmp_path)) == {"Mul": 2}


def test_simplify_merges_what_exporters_write_for_attention() -> None:
    """PyTorch's exporter reshapes to three axes to turn the last two of four."""
    data = parsed(
        f"""g (float[B, S, 8] x) => (float[B, 2, 4, S] y) <{weights("w", 8, 8)},
        int64[1] rest = {{-1}}, int64[1] four = {{4}}, int64[1] low = {{-9223372036854775808}},
        int64[1] last = {{-1}}, int64[1] but = {{-2}}>
        {{
          b = Shape <start = 0, end = 1> (x) s = Shape <start = 1, end = 2> (x)
          l = Concat <axis = 0> (b, s, rest, four) m = MatMul(x, w)
          h = Reshape <allowzero = 1> (m, l) t = Transpose <perm = [0, 2, 1, 3]> (h)
          shape = Shape(t) u = Slice(shape, but, last) v = Slice(shape, low, but)
          k = Concat <axis = 0> (rest, u, four) i = Reshape(t, k)
          j = Transpose <perm = [0, 2, 1]> (i) n = Concat <axis = 0> (v, four, u)
          y = Reshape(j, n)
        }}"""
    )
    made = passlib.simplify(data)
    kinds = {node.op for node in made.symbol.nodes() if not node.is_variable}
    assert kinds == {"MatMul", "Reshape", "Transpose"}
    assert len([node for node in made.symbol.nodes() if node.op == "Transpose"]) == 1
    x = np.random.default_rng(3).standard_normal((2, 5, 8)).astype(np.float32)
    want = results(data, {"x": x})[0]
    np.testing.assert_array_equal(np.asarray(made.run({"x": x})["y"].asnumpy()), want)


def test_a_new_constant_that_another_rule_removes_is_gone(tmp_path: Path) -> None:
    """Two Unsqueeze become one, whose axes the reduction then keeps."""
    data = parsed(
        f"""g (float[N, 3, 4] x) => (float[N, 1, 1] y) <{I1} a = {{1}}, {I1} b = {{2}}> {{
        r = ReduceMax <axes = [1, 2], keepdims = 0> (x)
        s = Unsqueeze(r, a) t = Unsqueeze(s, b) y = Neg(t) }}"""
    )
    made = after(data, "mergeReshapes", tmp_path)
    assert operators(made) == {"ReduceMax": 1, "Neg": 1}
    assert not onnx.load_from_string(made).graph.initializer
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    assert same_bits(results(made, {"x": x}), results(data, {"x": x}))


@pytest.mark.parametrize(("count", "left"), [(60, 0), (80, 80)])
def test_how_far_a_chain_of_reshapes_is_followed(count: int, left: int, tmp_path: Path) -> None:
    """Computed shapes change the places of open sizes; the last is that of the input again."""
    orders = [*list(itertools.permutations(range(5)))[1:count], range(5)]
    lines = ["s = Shape(x)"]
    constants = []
    value = "x"
    for number, order in enumerate(orders):
        constants.append(f"int64[5] o{number} = {{{', '.join(map(str, order))}}}")
        lines += [
            f"g{number} = Gather(s, o{number})",
            f"r{number} = Reshape <allowzero = 1> ({value}, g{number})",
        ]
        value = f"r{number}"
    data = parsed(
        f"g (float[A, B, C, D, E] x) => (float[A, B, C, D, E] y) <{', '.join(constants)}> "
        f"{{ {' '.join(lines)} y = Neg({value}) }}"
    )
    made = operators(after(data, "mergeReshapes", tmp_path))
    assert (made["Reshape"], made["Neg"]) == (left, 1)
