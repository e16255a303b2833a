"""foldLinear: what goes into the weights of linear layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

import passlib
from rewriting import after, operators, parsed, results, weights

CONV = weights("w", 4, 3, 3, 3)
DECONV = weights("w", 3, 2, 3, 3)
MATRIX = weights("w", 6, 4)

FOLDED = {
    "Conv, Mul": ("a = Conv(x, w) y = Mul(a, c)", f"{CONV}, {weights('c', 4, 1, 1)}", {"Conv": 1}),
    "Conv, Add": (
        "a = Conv(x, w) y = Add(c, a)", f"{CONV}, {weights('c', 1, 4, 1, 1)}", {"Conv": 1},
    ),
    "Conv with bias, Sub, Div": (
        "a = Conv(x, w, b) d = Sub(a, c) y = Div(d, e)",
        f"{CONV}, {weights('b', 4)}, {weights('c', 4, 1, 1)}, {weights('e', 1)}",
        {"Conv": 1},
    ),
    "Conv, what it is taken from": (
        "a = Conv(x, w) y = Sub(c, a)", f"{CONV}, {weights('c', 1)}", {"Conv": 1},
    ),
    "Conv, Mul along the width": (
        "a = Conv(x, w) y = Mul(a, c)",
        f"{CONV}, {weights('c', 4)}",
        {"Conv": 1, "Mul": 1},
    ),
    "Conv, Add of another rank": (
        "a = Conv(x, w) y = Add(a, c)",
        f"{CONV}, {weights('c', 2, 1, 1, 1, 1)}",
        {"Conv": 1, "Add": 1},
    ),
    "Conv, division of a constant": (
        "a = Conv(x, w) y = Div(c, a)", f"{CONV}, {weights('c', 1)}", {"Conv": 1, "Div": 1},
    ),
    "Conv, division by zero": (
        "a = Conv(x, w) y = Div(a, c)", f"{CONV}, float[1] c = {{0}}", {"Conv": 1, "Div": 1},
    ),
    "Conv that two use": (
        "a = Conv(x, w) b = Mul(a, c) y = Add(a, b)",
        f"{CONV}, {weights('c', 4, 1, 1)}",
        {"Conv": 1, "Mul": 1, "Add": 1},
    ),
    "ConvTranspose in groups": (
        "a = ConvTranspose <group = 3> (x, w) b = Mul(a, c) y = Add(b, d)",
        f"{DECONV}, {weights('c', 6, 1, 1)}, {weights('d', 6, 1, 1)}",
        {"ConvTranspose": 1},
    ),
    "weights that two layers share": (
        "a = Conv(x, w) b = Mul(a, c) d = Conv(x, w) y = Add(b, d)",
        f"{CONV}, {weights('c', 4, 1, 1)}",
        {"Conv": 2, "Mul": 1, "Add": 1},
    ),
    "Mul, Conv with padding": (
        "a = Mul(c, x) y = Conv <pads = [1, 1, 1, 1]> (a, w, b)",
        f"{CONV}, {weights('b', 4)}, {weights('c', 3, 1, 1)}",
        {"Conv": 1},
    ),
    "Sub, Div, Conv": (
        "a = Sub(x, c) d = Div(a, e) y = Conv(d, w)",
        f"{CONV}, {weights('c', 3, 1, 1)}, {weights('e', 1)}",
        {"Conv": 1},
    ),
    "Sub, Div, Conv with padding": (
        "a = Sub(x, c) d = Div(a, e) y = Conv <pads = [0, 0, 0, 1]> (d, w)",
        f"{CONV}, {weights('c', 3, 1, 1)}, {weights('e', 1)}",
        {"Sub": 1, "Conv": 1},
    ),
    "Add, Conv that pads by itself": (
        "a = Add(x, c) y = Conv <auto_pad = \"SAME_UPPER\"> (a, w)",
        f"{CONV}, {weights('c', 3, 1, 1)}",
        {"Add": 1, "Conv": 1},
    ),
    "Sub from a constant, Conv in groups": (
        "a = Sub(c, x) y = Conv <group = 3> (a, v, b)",
        f"{weights('v', 6, 1, 3, 3)}, {weights('b', 6)}, {weights('c', 3, 1, 1)}",
        {"Conv": 1},
    ),
    "BatchNormalization, Conv": (
        "a = BatchNormalization(x, s, t, m, u) y = Conv(a, w)",
        f"{CONV}, {', '.join(weights(name, 3) for name in 'stmu')}",
        {"Conv": 1},
    ),
    "BatchNormalization by the batch, Conv": (
        "a, m1, u1 = BatchNormalization <training_mode = 1> (x, s, t, m, u) y = Conv(a, w)",
        f"{CONV}, {', '.join(weights(name, 3) for name in 'stmu')}",
        {"BatchNormalization": 1, "Conv": 1},
    ),
    "division by zero, Conv": (
        "a = Div(x, c) y = Conv(a, w)", f"{CONV}, float[1] c = {{0}}", {"Conv": 1, "Div": 1},
    ),
    "Mul along the width, Conv": (
        "a = Mul(x, c) y = Conv(a, w)", f"{CONV}, {weights('c', 6)}", {"Conv": 1, "Mul": 1},
    ),
    "Mul that two use, Conv": (
        ("a = Mul(x, c) b = Conv(a, w) d = Conv(a, w) e = Relu(a) f = ReduceMax(e) g = Add(b, d)"
        " y = Add(g, f)"),
        f"{CONV}, {weights('c', 1)}",
        {"Mul": 1, "Conv": 2, "Relu": 1, "ReduceMax": 1, "Add": 2},
    ),
    "Pad, Conv": (
        "p = Pad(x, s) y = Conv <pads = [1, 0, 0, 1]> (p, w)",
        f"{CONV}, int64[8] s = {{0, 0, 1, 2, 0, 0, 3, 0}}",
        {"Conv": 1},
    ),
    "Pad with another value": (
        "p = Pad(x, s, v) y = Conv(p, w)",
        f"{CONV}, float v = {{1}}, int64[8] s = {{0, 0, 1, 1, 0, 0, 1, 1}}",
        {"Pad": 1, "Conv": 1},
    ),
    "Pad that cuts": (
        "p = Pad(x, s) y = Conv(p, w)",
        f"{CONV}, int64[8] s = {{0, 0, -1, 0, 0, 0, 0, 0}}",
        {"Pad": 1, "Conv": 1},
    ),
    "Pad that mirrors": (
        "p = Pad <mode = \"reflect\"> (x, s) y = Conv(p, w)",
        f"{CONV}, int64[8] s = {{0, 0, 1, 1, 0, 0, 1, 1}}",
        {"Pad": 1, "Conv": 1},
    ),
    "Mul, Conv, Conv of 1 x 1": (
        "a = Mul(x, c) d = Conv(a, w, b) y = Conv(d, v)",
        f"{CONV}, {weights('b', 4)}, {weights('c', 3, 1, 1)}, {weights('v', 2, 4, 1, 1)}",
        {"Conv": 2},
    ),
    "MatMul, Mul": (
        "a = MatMul(x, w) y = Mul(a, c)", f"{MATRIX}, {weights('c', 4)}", {"MatMul": 1},
    ),
    "MatMul, Add": (
        "a = MatMul(x, w) y = Add(a, c)", f"{MATRIX}, {weights('c', 4)}", {"MatMul": 1, "Add": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_layers_on_images(name: str, tmp_path: Path) -> None:
    body, constants, expected = FOLDED[name]
    data = parsed(f"g (float[N, 3, 7, 6] x) => (float[A, B, C, D] y) <{constants}> {{ {body} }}")
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == expected
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 7, 6)).astype(np.float32)
    for have, want in zip(results(made, {"x": x}), results(data, {"x": x}), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attributes", ["", "<transB = 1>", "<alpha = 0.5, beta = 2.0>"])
@pytest.mark.parametrize("bias", [(), (1,), (4,), (1, 4)])
def test_gemm(attributes: str, bias: tuple[int, ...], tmp_path: Path) -> None:
    matrix = weights("w", 4, 6) if "transB" in attributes else weights("w", 6, 4)
    constants = [matrix, weights("c", 4), weights("e", 1, 1)]
    constants += [weights("b", *bias)] if bias else []
    data = parsed(
        f"""g (float[N, 6] x) => (float[N, 4] y) <{", ".join(constants)}>
        {{ a = Gemm {attributes} (x, w{", b" if bias else ""}) d = Mul(a, c) y = Add(d, e) }}"""
    )
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == {"Gemm": 1}
    x = np.random.default_rng(1).uniform(-1, 1, (3, 6)).astype(np.float32)
    np.testing.assert_allclose(
        results(made, {"x": x}), results(data, {"x": x}), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("attributes", ["", "<transB = 1>", "<alpha = 0.5, beta = 2.0>"])
@pytest.mark.parametrize("bias", [(), (4,)])
def test_in_front_of_gemm(attributes: str, bias: tuple[int, ...], tmp_path: Path) -> None:
    matrix = weights("w", 4, 6) if "transB" in attributes else weights("w", 6, 4)
    names = (("c", 6), ("e", 1), ("s", 6), ("t", 6), ("m", 6), ("u", 6))
    constants = [matrix, *(weights(name, size) for name, size in names)]
    constants += [weights("b", *bias)] if bias else []
    data = parsed(
        f"""g (float[N, 6] x) => (float[N, 4] y) <{", ".join(constants)}>
        {{ a = Add(x, c) d = Mul(e, a) n = BatchNormalization(d, s, t, m, u)
        y = Gemm {attributes} (n, w{", b" if bias else ""}) }}"""
    )
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == {"Gemm": 1}
    x = np.random.default_rng(1).uniform(-1, 1, (3, 6)).astype(np.float32)
    np.testing.assert_allclose(
        results(made, {"x": x}), results(data, {"x": x}), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("is_test", [0, 1])
def test_a_normalization_before_operator_set_7(is_test: int, tmp_path: Path) -> None:
    names = ", ".join(weights(name, 3) for name in "stmu")
    data = parsed(
        f"""<ir_version: 3, opset_import: ["" : 6]>
        g (float[2, 3, 7, 6] x, float[4, 3, 3, 3] w, float[3] s, float[3] t, float[3] m, float[3] u)
        => (float[A, B, C, D] y) <{CONV}, {names}>
        {{ a = BatchNormalization <is_test = {is_test}> (x, s, t, m, u) y = Conv(a, w) }}"""
    )
    made = passlib.load(data).optimize_for("foldLinear")
    found = [node.op for node in made.symbol.nodes() if node.op != "null"]
    assert found == (["Conv"] if is_test else ["BatchNormalization", "Conv"])


FRONT = {
    "a row": ("a = Mul(x, c) y = MatMul(a, w)", weights("c", 6), {"MatMul": 1}),
    "a column": ("a = Mul(x, c) y = MatMul(a, w)", weights("c", 2, 1), {"Mul": 1, "MatMul": 1}),
    "a sum": ("a = Add(x, c) y = MatMul(a, w)", weights("c", 6), {"Add": 1, "MatMul": 1}),
    "another axis": (
        "a = BatchNormalization(x, s, t, m, u) y = MatMul(a, w)",
        ", ".join(weights(name, 2) for name in "stmu"),
        {"BatchNormalization": 1, "MatMul": 1},
    ),
}


@pytest.mark.parametrize("name", FRONT)
def test_in_front_of_matmul(name: str, tmp_path: Path) -> None:
    body, constants, expected = FRONT[name]
    data = parsed(
        f"g (float[N, 2, 6] x) => (float[A, B, C] y) <{weights('w', 6, 4)}, {constants}> {{{body}}}"
    )
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == expected
    x = np.random.default_rng(1).uniform(-1, 1, (3, 2, 6)).astype(np.float32)
    np.testing.assert_allclose(
        results(made, {"x": x}), results(data, {"x": x}), rtol=1e-5, atol=1e-5
    )


SUMS = {
    "a row": ("a = MatMul(x, w) y = Add(a, c)", "float[N, 6] x", weights("c", 4), True),
    "a row in front": ("a = MatMul(x, w) y = Add(c, a)", "float[N, 6] x", weights("c", 1, 4), True),
    "one number": ("a = MatMul(x, w) y = Add(a, c)", "float[N, 6] x", weights("c", 1), True),
    "another matrix": (
        "a = MatMul(x, w) b = MatMul(x, w) y = Add(a, b)",
        "float[N, 6] x",
        "",
        True,
    ),
    "three axes": ("a = MatMul(x, w) y = Add(a, c)", "float[2, N, 6] x", weights("c", 4), False),
    "more rows": ("a = MatMul(x, w) y = Add(a, c)", "float[1, 6] x", weights("c", 3, 4), False),
    "a sum with itself": ("a = MatMul(x, w) y = Add(a, a)", "float[N, 6] x", "", False),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_behind_products(name: str, tmp_path: Path) -> None:
    body, given, summand, fused = SUMS[name]
    constants = ", ".join(filter(None, [weights("w", 6, 4), summand]))
    data = parsed(f"g ({given}) => (float[A, B] y) <{constants}> {{ {body} }}")
    made = after(data, "fuseMatMulAdd", tmp_path)
    assert operators(made)["Gemm"] == fused
    assert operators(made)["Add"] == (not fused)
    shape = [2, 3, 6] if "2, N" in given else [1 if "[1" in given else 3, 6]
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    for have, want in zip(results(made, {"x": x}), results(data, {"x": x}), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_a_layer_without_weights_stays(tmp_path: Path) -> None:
    model = onnx.load_from_string(
        parsed("g (float[2, 0] x) => (float[A, B] y) { a = MatMul(x, w) y = Mul(a, c) }")
    )
    arrays = {"w": np.zeros((0, 2), np.float32), "c": np.array([np.inf, 1], np.float32)}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()
    )
    data = model.SerializeToString()
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == operators(data)


BROADCAST = {
    "one channel": ("float[N, 1, 5, 5] x", weights("c", 3, 1, 1), "b = Mul(x, c) y = Conv(b, w)"),
    "channels not known": (
        "float[N, M, 5, 5] x",
        weights("c", 3, 1, 1),
        "b = Sub(c, x) y = Conv(b, w)",
    ),
    "an axis more": ("float[3, 5, 5] x", weights("c", 1, 1, 1, 1), "b = Add(x, c) y = Conv(b, w)"),
    "one column": ("float[N, 1] x", weights("c", 6), "b = Mul(x, c) y = MatMul(b, v)"),
    "one column of Gemm": ("float[N, 1] x", weights("c", 1, 6), "b = Div(x, c) y = Gemm(b, v)"),
}


@pytest.mark.parametrize("name", BROADCAST)
def test_a_constant_that_changes_the_shape_in_front_of_a_layer_stays(
    name: str, tmp_path: Path
) -> None:
    given, constant, body = BROADCAST[name]
    rank = 2 if "v)" in body else 4
    sizes = ", ".join("ABCD"[:rank])
    used = weights("v", 6, 4) if rank == 2 else weights("w", 2, 3, 1, 1)
    data = parsed(f"g ({given}) => (float[{sizes}] y) <{used}, {constant}> {{ {body} }}")
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == operators(data)
    shape = [
        int(size) for size in given.translate(str.maketrans("NM", "21", "floatx[] ")).split(",")
    ]
    x = np.random.default_rng(1).uniform(1, 2, shape).astype(np.float32)
    for have, want in zip(results(made, {"x": x}), results(data, {"x": x}), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_weights_are_not_copied_for_an_addition(tmp_path: Path) -> None:
    data = parsed(
        f"""g (float[N, 3, 7, 6] x) => (float[A, B, C, D] y) <{CONV}, {weights("c", 4, 1, 1)}>
        {{ a = Conv(x, w) b = Add(a, c) d = Conv(x, w) y = Add(b, d) }}"""
    )
    made = after(data, "foldLinear", tmp_path)
    assert operators(made) == {"Conv": 2, "Add": 1}
    assert len(made) < len(data) + 200
