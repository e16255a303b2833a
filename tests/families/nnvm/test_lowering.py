"""NNVM's own operators compute what their documentation states, measured against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnvm_cases import (
    ROW,
    Array,
    Attrs,
    E,
    G,
    I,
    J,
    M,
    P,
    Q,
    S,
    V,
    X,
    Y,
    b5,
    check,
    real,
    w5,
    whole,
)
from passlib.families.nnvm.lowering.layers import table

pytest.importorskip("onnxruntime")


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def batch_norm(x: Array, gamma: Array, beta: Array, mean: Array, var: Array, axis: int) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    g, b, m, v = (a.reshape(shape) for a in (gamma, beta, mean, var))
    return (x - m) / np.sqrt(v + 1e-5) * g + b


CASES: list[tuple[str, Attrs, list[Array], Array | list[Array]]] = [
    ("dense", {"units": "5"}, [P, w5, b5], P @ w5.T + b5),
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


def test_every_own_operator_is_tested() -> None:
    from passlib.families.nnvm.lowering import load_table

    load_table()
    tested = {case[0] for case in CASES}
    elsewhere = {"conv2d", "conv2d_transpose", "max_pool2d", "avg_pool2d", "resize", "tvm_op"}
    synonyms = {"layout_transform", "identity"}
    assert set(table.operators()) - tested == (elsewhere | synonyms) - tested
