"""NNVM's own operators compute what their documentation says, measured against NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from nnvm_files import GOLDEN, NNVM_CORE, TVM_EXECUTOR, text_of
from passlib.dialects.nnvm.lowering.table import table
from passlib.dialects.nnvm.operators import count_outputs
from passlib.errors import UnsupportedError

pytest.importorskip("onnxruntime")

GENERATOR = np.random.default_rng(7)
Array = np.ndarray[Any, Any]
Attrs = dict[str, str]


def real(*shape: int) -> Array:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 9) -> Array:
    return GENERATOR.integers(low, high, shape).astype(np.int32)


def run(op: str, attrs: Attrs, inputs: list[Array], folder: Path) -> list[Array]:
    """Run a graph of one operator."""
    count = count_outputs(op, attrs) or 1
    used = 1 if op in ("batch_norm", "dropout") else count
    variables = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(len(inputs))]
    node = {
        "op": op,
        "name": "op",
        "attrs": attrs,
        "inputs": [[i, 0, 0] for i in range(len(inputs))],
    }
    last = len(inputs)
    graph = {
        # The first operator says that the names are NNVM's, also where MXNet has them too.
        "nodes": [*variables, node, {"op": "block_grad", "name": "end", "inputs": [[last, 0, 0]]}],
        "arg_nodes": list(range(last)),
        "heads": [[last, i, 0] for i in range(used)],
    }
    path = folder / "graph.json"
    path.write_bytes(text_of(graph))
    model = passlib.model.load(path, dialect="nnvm")
    result = model(*inputs)
    return [np.asarray(r) for r in (result if isinstance(result, list) else [result])]


def check(
    op: str, attrs: Attrs, inputs: list[Array], expected: Array | list[Array], folder: Path
) -> None:
    outputs = run(op, attrs, inputs, folder)
    wanted = expected if isinstance(expected, list) else [expected]
    assert len(outputs) == len(wanted)
    for output, value in zip(outputs, wanted, strict=True):
        assert output.dtype == value.dtype
        assert output.shape == value.shape
        np.testing.assert_allclose(output, value, rtol=1e-5, atol=1e-5)


def windows(
    data: Array, kernel: tuple[int, int], strides: tuple[int, int], dilation: tuple[int, int]
) -> Array:
    """All windows of (N, C, H, W): (N, C, rows, columns, kernel height, kernel width)."""
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(data, span, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]


def conv2d(
    data: Array,
    weight: Array,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Array:
    top, left, bottom, right = pads
    padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    seen = windows(padded, weight.shape[2:], strides, dilation)
    parts = []
    for part, kernels in zip(
        np.split(seen, groups, axis=1), np.split(weight, groups, axis=0), strict=True
    ):
        parts.append(np.einsum("nchwij,ocij->nohw", part, kernels))
    return np.concatenate(parts, axis=1).astype(data.dtype)


X = real(2, 4, 7, 6)
W = real(6, 4, 3, 2)
B = real(6)
CONV = {"channels": "6", "kernel_size": "[3, 2]"}


@pytest.mark.parametrize(
    ("attrs", "options"),
    [
        ({}, {}),
        ({"padding": "(1, 2)"}, {"pads": (1, 2, 1, 2)}),
        ({"padding": "1"}, {"pads": (1, 1, 1, 1)}),
        ({"padding": "(0, 1, 2, 3)"}, {"pads": (0, 1, 2, 3)}),
        ({"strides": "(2, 3)"}, {"strides": (2, 3)}),
        ({"dilation": "(2, 1)", "strides": "2"}, {"dilation": (2, 1), "strides": (2, 2)}),
    ],
)
def test_conv2d(attrs: Attrs, options: dict[str, Any], tmp_path: Path) -> None:
    expected = conv2d(X, W, **options)
    bias = expected + B.reshape(1, -1, 1, 1)
    check("conv2d", {**CONV, **attrs}, [X, W, B], bias, tmp_path)
    check("conv2d", {**CONV, **attrs, "use_bias": "0"}, [X, W], expected, tmp_path)


def test_conv2d_in_groups_and_other_orders_of_axes(tmp_path: Path) -> None:
    weight = real(6, 2, 3, 2)
    expected = conv2d(X, weight, groups=2)
    attrs = {**CONV, "groups": "2", "use_bias": "False"}
    check("conv2d", attrs, [X, weight], expected, tmp_path)
    last = X.transpose(0, 2, 3, 1).copy()
    kernel = weight.transpose(2, 3, 1, 0).copy()
    orders = {"layout": "NHWC", "kernel_layout": "HWIO"}
    check("conv2d", {**attrs, **orders}, [last, kernel], expected.transpose(0, 2, 3, 1), tmp_path)
    orders["out_layout"] = "HWCN"
    check("conv2d", {**attrs, **orders}, [last, kernel], expected.transpose(2, 3, 1, 0), tmp_path)


@pytest.mark.parametrize(
    ("strides", "padding", "extra"), [((1, 1), 0, 0), ((2, 2), 1, 1), ((3, 3), 0, 2)]
)
def test_conv2d_transpose_is_the_gradient(
    strides: tuple[int, int], padding: int, extra: int, tmp_path: Path
) -> None:
    data, weight = real(1, 3, 4, 4), real(3, 2, 3, 3)
    size = strides[0] * 3 + 3 - 2 * padding + extra
    expected = np.zeros((1, 2, size, size), np.float32)
    spread = np.zeros((1, 2, size + 2 * padding, size + 2 * padding), np.float32)
    for i in range(4):
        for j in range(4):
            top, left = i * strides[0], j * strides[1]
            spread[:, :, top : top + 3, left : left + 3] += np.einsum(
                "nc,cohw->nohw", data[:, :, i, j], weight
            )
    expected[:] = spread[:, :, padding : padding + size, padding : padding + size]
    attrs = {
        "channels": "2",
        "kernel_size": "(3, 3)",
        "strides": str(strides),
        "padding": f"({padding}, {padding})",
        "output_padding": f"({extra}, {extra})",
        "use_bias": "False",
    }
    check("conv2d_transpose", attrs, [data, weight], expected, tmp_path)


def pooled(
    data: Array,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    *,
    ceil: bool,
    kind: str,
) -> Array:
    top, left, bottom, right = pads
    sizes = data.shape[2:]
    totals = (sizes[0] + top + bottom, sizes[1] + left + right)
    over = [
        -(total - k) % s if ceil else 0 for total, k, s in zip(totals, kernel, strides, strict=True)
    ]
    widths = ((0, 0), (0, 0), (top, bottom + over[0]), (left, right + over[1]))
    outside = np.pad(data, widths, constant_values=-np.inf if kind == "max" else 0)
    seen = windows(outside, kernel, strides, (1, 1))
    if kind == "max":
        return seen.max((4, 5))
    if kind == "include":
        return seen.mean((4, 5))
    inside = windows(np.pad(np.ones_like(data), widths), kernel, strides, (1, 1)).sum((4, 5))
    return seen.sum((4, 5)) / np.maximum(inside, 1)


@pytest.mark.parametrize("kind", ["max", "exclude", "include"])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((2, 2), (1, 1), (0, 0, 0, 0)),
        ((3, 2), (2, 3), (1, 0, 1, 0)),
        ((3, 3), (2, 2), (0, 1, 2, 1)),
        ((2, 2), (4, 4), (1, 1, 1, 1)),
    ],
)
def test_pooling(
    kind: str,
    ceil: bool,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    tmp_path: Path,
) -> None:
    expected = pooled(X, kernel, strides, pads, ceil=ceil, kind=kind)
    if kind == "max" and np.isinf(expected).any():
        expected = np.where(np.isinf(expected), np.finfo(np.float32).min, expected)
    attrs = {
        "pool_size": str(kernel),
        "strides": str(strides),
        "padding": str(pads),
        "ceil_mode": str(ceil),
    }
    if kind == "include":
        attrs["count_include_pad"] = "True"
    op = "max_pool2d" if kind == "max" else "avg_pool2d"
    check(op, attrs, [X], expected.astype(np.float32), tmp_path)
    last = X.transpose(0, 2, 3, 1).copy()
    moved = expected.astype(np.float32).transpose(0, 2, 3, 1)
    check(op, {**attrs, "layout": "NHWC"}, [last], moved, tmp_path)


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def batch_norm(x: Array, gamma: Array, beta: Array, mean: Array, var: Array, axis: int) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    g, b, m, v = (a.reshape(shape) for a in (gamma, beta, mean, var))
    return (x - m) / np.sqrt(v + 1e-5) * g + b


G, E, M, V = real(4), real(4), real(4), np.abs(real(4)) + 0.5
P, Q = real(3, 4), real(3, 4)
I, J = whole(3, 4), whole(3, 4, low=1)  # noqa: E741
S = np.abs(P) + 0.5
Y = real(2, 3, 5)
ROW = real(1, 4)

CASES: list[tuple[str, Attrs, list[Array], Array | list[Array]]] = [
    ("dense", {"units": "5"}, [P, w5 := real(5, 4), b5 := real(5)], P @ w5.T + b5),
    ("dense", {"units": "5", "use_bias": "False"}, [P, w5], P @ w5.T),
    ("dense", {"units": "2"}, [Y, w2 := real(2, 5), b2 := real(2)], Y @ w2.T + b2),
    ("matmul", {}, [P, m := real(4, 2)], P @ m),
    ("matmul", {"transpose_a": "True"}, [P, n := real(3, 2)], P.T @ n),
    ("matmul", {"transpose_b": "1"}, [P, Q], P @ Q.T),
    ("matmul", {}, [c := real(4), e := real(4)], np.dot(c, e).reshape(1)),
    ("matmul", {}, [f := real(2, 3, 4), d := real(4, 5, 2)], np.tensordot(f, d, 1)),
    ("relu", {}, [P], np.maximum(P, 0)),
    ("leaky_relu", {}, [P], np.where(P > 0, P, 0.25 * P).astype(np.float32)),
    ("leaky_relu", {"alpha": "0.1"}, [P], np.where(P > 0, P, np.float32(0.1) * P)),
    ("prelu", {}, [X, G], np.where(X > 0, X, X * G.reshape(1, 4, 1, 1))),
    ("prelu", {"axis": "3"}, [X, g6 := real(6)], np.where(X > 0, X, X * g6)),
    ("batch_norm", {}, [X, G, E, M, V], batch_norm(X, G, E, M, V, 1)),
    ("batch_norm", {"scale": "False"}, [X, G, E, M, V], batch_norm(X, G * 0 + 1, E, M, V, 1)),
    ("batch_norm", {"center": "0"}, [X, G, E, M, V], batch_norm(X, G, E * 0, M, V, 1)),
    ("batch_norm", {"axis": "-1"}, [P, G, E, M, V], batch_norm(P, G, E, M, V, 1)),
    (
        "batch_norm",
        {"axis": "3"},
        [x3 := X.transpose(0, 2, 3, 1).copy(), G, E, M, V],
        batch_norm(x3, G, E, M, V, 3),
    ),
    ("dropout", {"rate": "0.3"}, [P], P),
    ("softmax", {}, [X], softmax(X, -1)),
    ("softmax", {"axis": "1"}, [X], softmax(X, 1)),
    ("log_softmax", {}, [P], np.log(softmax(P, -1))),
    ("l2_normalize", {"eps": "0.5", "axis": "(1,)"}, [P],
     P / np.sqrt(np.maximum((P * P).sum(1, keepdims=True), 0.5))),
    ("lrn", {"size": "3", "axis": "1", "alpha": "0.1", "beta": "0.75", "bias": "2"}, [X],
     X / (2 + 0.1 / 3 * sum(
         np.pad(X * X, ((0, 0), (1, 1), (0, 0), (0, 0)))[:, i : i + 4] for i in range(3)
     )) ** np.float32(0.75)),
    ("global_max_pool2d", {}, [X], X.max((2, 3), keepdims=True)),
    ("global_avg_pool2d", {"layout": "NHWC"}, [X], X.mean((1, 2), keepdims=True)),
    ("copy", {}, [P], P),
    ("block_grad", {}, [P], P),
    ("elemwise_add", {}, [P, Q], P + Q),
    ("elemwise_sub", {}, [P, Q], P - Q),
    ("elemwise_mul", {}, [P, Q], P * Q),
    ("elemwise_div", {}, [P, S], P / S),
    ("elemwise_mod", {}, [I, J], np.fmod(I, J)),
    ("elemwise_mod", {}, [P, S], np.fmod(P, S)),
    ("elemwise_pow", {}, [S, Q], S**Q),
    ("elemwise_sum", {"num_args": "3"}, [P, Q, S], P + Q + S),
    ("elemwise_sum", {"num_args": "1"}, [P], P),
    ("broadcast_add", {}, [P, ROW], P + ROW),
    ("broadcast_sub", {}, [P, ROW], P - ROW),
    ("broadcast_mul", {}, [P, ROW], P * ROW),
    ("broadcast_div", {}, [ROW, S], ROW / S),
    ("broadcast_max", {}, [P, ROW], np.maximum(P, ROW)),
    ("broadcast_min", {}, [P, ROW], np.minimum(P, ROW)),
    ("broadcast_mod", {}, [I, row := whole(1, 4, low=2)], np.fmod(I, row)),
    ("broadcast_pow", {}, [S, ROW], S**ROW),
    ("broadcast_left_shift", {}, [I, k := whole(1, 4, low=0, high=5)], I << k),
    ("broadcast_right_shift", {}, [I, k], I >> k),
    ("__add_symbol__", {}, [P, ROW], P + ROW),
    ("__sub_symbol__", {}, [P, ROW], P - ROW),
    ("__mul_symbol__", {}, [P, ROW], P * ROW),
    ("__div_symbol__", {}, [P, S], P / S),
    ("__add_scalar__", {"scalar": "2.5"}, [P], P + np.float32(2.5)),
    ("__sub_scalar__", {"scalar": "2"}, [I], I - 2),
    ("__rsub_scalar__", {"scalar": "2"}, [P], 2 - P),
    ("__mul_scalar__", {"scalar": "-3"}, [P], P * -3),
    ("__div_scalar__", {"scalar": "2"}, [P], P / 2),
    ("__rdiv_scalar__", {"scalar": "2"}, [S], 2 / S),
    ("__pow_scalar__", {"scalar": "3"}, [P], P**3),
    ("__rpow_scalar__", {"scalar": "2"}, [P], np.float32(2) ** P),
    ("__lshift_scalar__", {"scalar": "3"}, [I], I << 3),
    ("__rshift_scalar__", {"scalar": "2"}, [I], I >> 2),
    ("__mod_symbol__", {}, [I, row], np.fmod(I, row)),
    ("__pow_symbol__", {}, [S, ROW], S**ROW),
    ("__max_symbol__", {}, [P, ROW], np.maximum(P, ROW)),
    ("__min_symbol__", {}, [P, ROW], np.minimum(P, ROW)),
    ("__left_shift_symbol__", {}, [I, shifts := whole(1, 4, low=0, high=5)], I << shifts),
    ("__right_shift_symbol__", {}, [I, shifts], I >> shifts),
    ("__equal_symbol__", {}, [I, row], (row == I).astype(np.int32)),
    ("__not_equal_symbol__", {}, [I, row], (row != I).astype(np.int32)),
    ("__greater_symbol__", {}, [P, ROW], (P > ROW).astype(np.float32)),
    ("__greater_equal_symbol__", {}, [I, row], (row <= I).astype(np.int32)),
    ("__less_symbol__", {}, [P, ROW], (P < ROW).astype(np.float32)),
    ("__less_equal_symbol__", {}, [I, row], (row >= I).astype(np.int32)),
    ("broadcast_less", {}, [P, ROW], (P < ROW).astype(np.float32)),
    ("broadcast_less_equal", {}, [I, row], (row >= I).astype(np.int32)),
    ("greater", {}, [P, Q], (P > Q).astype(np.float32)),
    ("less", {}, [I, J], (I < J).astype(np.int32)),
    ("logical_and", {}, [z := whole(3, 4, low=0, high=2), v := whole(3, 4, low=-1, high=2)],
     ((z != 0) & (v != 0)).astype(np.int32)),
    ("logical_or", {}, [z, v], ((z != 0) | (v != 0)).astype(np.int32)),
    ("logical_not", {}, [z], (z == 0).astype(np.int32)),
    ("exp", {}, [P], np.exp(P)),
    ("log", {}, [S], np.log(S)),
    ("sqrt", {}, [S], np.sqrt(S)),
    ("tanh", {}, [P], np.tanh(P)),
    ("sigmoid", {}, [P], 1 / (1 + np.exp(-P))),
    ("floor", {}, [P], np.floor(P)),
    ("ceil", {}, [P], np.ceil(P)),
    ("trunc", {}, [P], np.trunc(P)),
    ("abs", {}, [P], np.abs(P)),
    ("negative", {}, [I], -I),
    ("clip", {"a_min": "-0.5", "a_max": "0.5"}, [P], P.clip(-0.5, 0.5)),
    ("flatten", {}, [X], X.reshape(2, -1)),
    ("reshape", {"shape": "(0, -1, 2)"}, [X], X.reshape(2, -1, 2)),
    ("transpose", {}, [Y], Y.transpose()),
    ("transpose", {"axes": "(1, 0, 2)"}, [Y], Y.transpose(1, 0, 2)),
    ("concatenate", {}, [P, Q], np.concatenate([P, Q], 1)),
    ("concatenate", {"axis": "0"}, [P, Q, S], np.concatenate([P, Q, S], 0)),
    ("split", {"indices_or_sections": "2"}, [P], np.split(P, 2, 1)),
    ("split", {"indices_or_sections": "(1, 3)", "axis": "1"}, [P], np.split(P, [1, 3], 1)),
    ("split", {"indices_or_sections": "(2,)", "axis": "0"}, [P], np.split(P, [2], 0)),
    ("expand_dims", {"axis": "1"}, [P], P[:, None]),
    ("expand_dims", {"axis": "-1"}, [P], P[..., None]),
    ("expand_dims", {"axis": "0", "num_newaxis": "2"}, [P], P[None, None]),
    ("squeeze", {}, [P[None, :, None]], P),
    ("squeeze", {"axis": "(0,)"}, [P[None, :, None]], P[:, None]),
    ("squeeze", {}, [P], P),
    ("pad", {"pad_width": "((1, 2), (0, 3))", "pad_value": "4"}, [P],
     np.pad(P, ((1, 2), (0, 3)), constant_values=4)),
    ("take", {}, [P, k := whole(2, 3, low=0, high=12)], P.reshape(-1)[k]),
    ("take", {"axis": "1"}, [P, np.array([3, 0, 9, -4], np.int32)], P[:, [3, 0, 3, 0]]),
    ("strided_slice", {"begin": "(0, 3)", "end": "(2, 0)", "stride": "(1, -2)"}, [P],
     P[0:2, 3:0:-2]),
    ("strided_slice", {"begin": "(1,)", "end": "(3,)"}, [P], P[1:3]),
    ("strided_slice", {"begin": "(0, -2)", "end": "(2, 4)"}, [P], P[0:2, -2:4]),
    ("strided_slice", {"begin": "(1,)", "end": "(3, 2)"}, [P], P[1:3, :2]),
    ("strided_slice", {"begin": "(1,)", "end": "(3,)", "stride": "(1, 2)"}, [P], P[1:3, ::2]),
    ("slice_like", {}, [P, real(2, 3)], P[:2, :3]),
    ("slice_like", {}, [Y, real(1, 2)], Y[:1, :2]),
    ("slice_like", {"axis": "(-1,)"}, [P, real(2, 3)], P[:, :3]),
    ("flip", {}, [P], P[::-1]),
    ("flip", {"axis": "1"}, [P], P[:, ::-1]),
    ("__layout_transform__", {"src_layout": "NCHW", "dst_layout": "NHWC"}, [X],
     X.transpose(0, 2, 3, 1)),
    ("broadcast_to", {"shape": "(5, 0)"}, [ROW], np.broadcast_to(ROW, (5, 4)).copy()),
    ("sum", {}, [Y], Y.sum().reshape(1)),
    ("sum", {"axis": "(0, 2)", "keepdims": "True"}, [Y], Y.sum((0, 2), keepdims=True)),
    ("sum", {"axis": "1", "exclude": "True"}, [Y], Y.sum((0, 2))),
    ("max", {"axis": "1"}, [Y], Y.max(1)),
    ("min", {"axis": "(1, 2)"}, [Y], Y.min((1, 2))),
    ("mean", {"axis": "1"}, [Y], Y.mean(1)),
    ("prod", {"axis": "1"}, [Y], Y.prod(1)),
    ("argmax", {"axis": "1"}, [Y], Y.argmax(1).astype(np.int32)),
    ("argmax", {"axis": "1", "keepdims": "True"}, [Y], Y.argmax(1)[:, None].astype(np.int32)),
    ("argmin", {}, [Y], Y.argmin().reshape(1).astype(np.int32)),
    ("argmin", {"keepdims": "1"}, [Y], Y.argmin().reshape(1, 1, 1).astype(np.int32)),
    ("argmax", {"axis": "(0, 1)", "exclude": "1"}, [Y], Y.argmax(2).astype(np.int32)),
    ("collapse_sum", {}, [Y, real(3, 1)], Y.sum((0, 2)).reshape(3, 1)),
    ("collapse_sum", {}, [Y, real(2, 3, 5)], Y),
    ("expand_like", {"axis": "1"}, [y := real(2, 5), Y],
     np.broadcast_to(y[:, None], Y.shape).copy()),
    ("expand_like", {"axis": "1", "exclude": "1"}, [t := real(3), Y],
     np.broadcast_to(t[None, :, None], Y.shape).copy()),
    ("expand_like", {}, [o := real(1), Y], np.full(Y.shape, o[0])),
    ("expand_like", {"axis": "0", "keepdims": "1"}, [h := real(1, 3, 5), Y],
     np.broadcast_to(h, Y.shape).copy()),
    ("expand_like", {}, [j := real(1, 3, 1), Y], np.broadcast_to(j, Y.shape).copy()),
    ("expand_like", {"axis": "0"}, [j, Y], np.broadcast_to(j, Y.shape).copy()),
    ("full", {"shape": "(2, 3)", "fill_value": "1.5", "dtype": "float64"}, [],
     np.full((2, 3), 1.5)),
    ("zeros", {"shape": "(2,)", "dtype": "int32"}, [], np.zeros(2, np.int32)),
    ("ones", {"shape": "(2, 1)"}, [], np.ones((2, 1), np.float32)),
    ("full_like", {"fill_value": "7"}, [I], np.full_like(I, 7)),
    ("zeros_like", {}, [P], P * 0),
    ("ones_like", {}, [I], np.ones_like(I)),
    ("cast", {"dtype": "int32"}, [P * 10], (P * 10).astype(np.int32)),
    ("where", {}, [z, I, J], np.where(z != 0, I, J)),
    ("upsampling", {"scale": "2"}, [X], X.repeat(2, 2).repeat(2, 3)),
    ("upsampling", {"scale": "3", "layout": "NHWC"}, [X], X.repeat(3, 1).repeat(3, 2)),
    ("resize", {"size": "(14, 12)", "method": "NEAREST_NEIGHBOR", "align_corners": "False"}, [X],
     X.repeat(2, 2).repeat(2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_operator(
    op: str,
    attrs: Attrs,
    inputs: list[Array],
    expected: Array | list[Array],
    tmp_path: Path,
) -> None:
    check(op, attrs, inputs, expected, tmp_path)


@pytest.mark.parametrize("aligned", [True, False])
def test_bilinear_resize_draws_straight_lines(aligned: bool, tmp_path: Path) -> None:
    sizes, wanted = X.shape[2:], (9, 11)
    result = X.astype(np.float64)
    for axis, (size, want) in enumerate(zip(sizes, wanted, strict=True), start=2):
        ratio = (size - 1) / (want - 1) if aligned else size / want
        places = np.minimum(np.arange(want) * ratio, size - 1)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, size - 1)
        shape = [1] * 4
        shape[axis] = want
        part = (places - low).reshape(shape)
        result = result.take(low, axis) * (1 - part) + result.take(high, axis) * part
    attrs = {"size": "(9, 11)", "align_corners": str(aligned)}
    check("resize", attrs, [X], result.astype(np.float32), tmp_path)


def test_every_own_operator_is_tested() -> None:
    from passlib.dialects.nnvm.lowering import load_table

    load_table()
    tested = {case[0] for case in CASES}
    elsewhere = {"conv2d", "conv2d_transpose", "max_pool2d", "avg_pool2d", "resize", "tvm_op"}
    synonyms = {"layout_transform", "identity"}
    assert set(table.operators()) - tested == (elsewhere | synonyms) - tested


def test_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    graph = json.loads(text_of(NNVM_CORE))
    graph["nodes"][3].update(op="dropout")
    path.write_bytes(text_of(graph))
    model = passlib.model.load(path, dialect="nnvm")
    feeds = {"data": real(1, 3, 5, 5), "w": real(2, 3, 3, 3)}
    model.run(feeds)
    with pytest.raises(UnsupportedError, match=r"relu.*inference"):
        model.run(feeds, train=True)


@pytest.mark.parametrize("dialect", ["nnvm", "mxnet"])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".golden.json"))
def test_outputs_that_mxnet_computed(path: Path, dialect: str) -> None:
    golden = json.loads(path.read_bytes())
    graph = path.with_name(path.name.replace(".golden.json", ".json"))
    model = passlib.model.load(graph, dialect=dialect)

    def array(value: dict[str, Any]) -> Array:
        return np.array(value["data"], np.float32).reshape(value["shape"])

    feeds = {
        name: array(value) for kind in ("inputs", "aux") for name, value in golden[kind].items()
    }
    outputs = model.run(feeds)
    assert list(outputs) == list(golden["outputs"])
    for name, value in golden["outputs"].items():
        np.testing.assert_allclose(outputs[name], array(value), rtol=1e-4, atol=1e-5)


def test_a_model_of_nnvm_runs_and_is_exported(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(NNVM_CORE))
    model = passlib.model.load(path, dialect="nnvm")
    data, weight = real(1, 3, 5, 5), real(2, 3, 3, 3)
    total, relu = model(data, weight)
    expected = np.maximum(conv2d(data, weight), 0)
    np.testing.assert_allclose(relu, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(total, expected.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
    model.to_onnx(tmp_path / "m.onnx", {"data": data.shape, "w": weight.shape})
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


def test_inputs_have_the_types_that_an_executor_file_lists(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(TVM_EXECUTOR))
    data = passlib.dialects.find("nnvm").load(path)
    types = passlib.dialects.find("nnvm").input_types(data)
    assert {name: (t.dtype, t.shape) for name, t in types.items()} == {
        "A": (np.float32, (2, 3)),
        "B": (np.float32, (2, 3)),
    }
    model = passlib.model.load(path, dialect="nnvm")
    with pytest.raises(UnsupportedError, match=r"'add' \(tvm_op\).*fused_add"):
        model.run({"A": P, "B": Q})
