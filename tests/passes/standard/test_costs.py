"""The cost of a model, and simplification by each measure."""

from __future__ import annotations

import pytest

import passlib
from passlib.passes.cost import COSTS, Work, work_of, works_of
from rewriting import parsed, weights

ONNX = {
    "Conv": (
        (
            f"float[2, 3, 7, 6] x) => (float[A, B, C, D] y) <{weights('w', 4, 3, 3, 3)}>"
            " { y = Conv(x, w)"
        ),
        Work(2 * (2 * 4 * 5 * 4) * 27, 4 * (252 + 108 + 160)),
    ),
    "Conv in groups": (
        (
            f"float[1, 4, 5, 5] x) => (float[A, B, C, D] y) <{weights('w', 4, 1, 3, 3)}>"
            " { y = Conv <group = 4> (x, w)"
        ),
        Work(2 * (4 * 3 * 3) * 9, 4 * (100 + 36 + 36)),
    ),
    "ConvTranspose": (
        (
            f"float[1, 3, 2, 2] x) => (float[A, B, C, D] y) <{weights('w', 3, 2, 2, 2)}>"
            " { y = ConvTranspose <strides = [2, 2]> (x, w)"
        ),
        Work(2 * 12 * 8, 4 * (12 + 24 + 32)),
    ),
    "MatMul of a stack": (
        f"float[5, 2, 6] x) => (float[A, B, C] y) <{weights('w', 6, 4)}> {{ y = MatMul(x, w)",
        Work(2 * 40 * 6, 4 * (60 + 24 + 40)),
    ),
    "Gemm": (
        (
            f"float[6, 2] x) => (float[A, B] y) <{weights('w', 4, 6)}>"
            " { y = Gemm <transA = 1, transB = 1> (x, w)"
        ),
        Work(2 * 8 * 6, 4 * (12 + 24 + 8)),
    ),
    "Einsum": (
        (
            "float[2, 3, 4] x, float[4, 5] w) => (float[A, B, C] y)"
            ' { y = Einsum <equation = "bij, jk -> bik"> (x, w)'
        ),
        Work(2 * 2 * 3 * 4 * 5, 4 * (24 + 20 + 30)),
    ),
    "Attention": (
        (
            "float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 6] v)"
            " => (float[A, B, C, D] y)"
            " { y = Attention(q, k, v)"
        ),
        Work(2 * 2 * 3 * 5 * (4 + 6), 4 * (24 + 40 + 60 + 36)),
    ),
    "Attention of joined heads": (
        (
            "float[1, 3, 8] q, float[1, 5, 8] k, float[1, 5, 12] v) => (float[A, B, C] y)"
            " { y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v)"
        ),
        Work(2 * 2 * 3 * 5 * (4 + 6), 4 * (24 + 40 + 60 + 36)),
    ),
    "a view": ("float[2, 6] x) => (float[A, B] y) { y = Flatten(x)", Work(0, 0)),
    "a move": ("float[2, 6] x) => (float[A, B] y) { y = Transpose(x)", Work(0, 4 * 24)),
    "a part": (
        "float[100, 6] x, int64[3] i) => (float[A, B] y) { y = Gather(x, i)",
        Work(0, 2 * 4 * 18),
    ),
    "a reduction": (
        "float[4, 6] x) => (float[A] y) { y = ReduceMax <keepdims = 0> (x)",
        Work(24, 4 * 25),
    ),
    "a pooling": (
        "float[1, 1, 4, 4] x) => (float[A, B, C, D] y) { y = MaxPool <kernel_shape = [2, 2]> (x)",
        Work(9 * 4, 4 * (16 + 9)),
    ),
    "open sizes": ("float[N, 6] x) => (float[A, B] y) { y = Relu(x)", Work(6, 48)),
}


@pytest.mark.parametrize("name", ONNX)
def test_estimates(name: str) -> None:
    text, expected = ONNX[name]
    model = passlib.load(parsed(f"g ({text} }}"))
    assert work_of(model.symbol, model.args) == expected


def test_estimates_of_each_node() -> None:
    text = f"""g (float[2, 6] x) => (float[A, B] y) <{weights("w", 6, 3)}, int64[2] s = {{2, 6}}>
        {{ a = Neg(x) v = Reshape(a, s) b = MatMul(v, w) c = Relu(b) y = Add(c, b) }}"""
    model = passlib.load(parsed(text))
    found = works_of(model.symbol, model.args)
    assert [(w.node.op, w.flops, w.read, w.written, w.weights, w.live) for w in found] == [
        ("Neg", 12, 48, 48, 0, 96),
        ("Reshape", 0, 0, 0, 16, 48),
        ("MatMul", 2 * 6 * 6, 48 + 72, 24, 72, 48 + 24),
        ("Relu", 6, 24, 24, 0, 48),
        ("Add", 6, 48, 24, 0, 72),
    ]


def test_estimates_of_an_mxnet_model() -> None:
    x = passlib.sym.var("x", shape=(2, 3))
    y = passlib.sym.relu(passlib.sym.FullyConnected(x, num_hidden=4, name="fc"))
    assert work_of(y, {}).flops == 2 * 8 * 3 + 8


@pytest.mark.parametrize("cost", COSTS)
def test_no_measure_grows(cost: str) -> None:
    data = parsed(
        f"""g (float[2, 3, 7, 6] x) => (float[A, B, C, D] y)
        <{weights("w", 4, 3, 3, 3)}, float[1] c = {{2}}>
        {{ a = Conv(x, w) b = Mul(a, c) d = Identity(b) y = Transpose(d) }}"""
    )
    model = passlib.load(data)
    made = passlib.simplify(model, cost=cost)  # type: ignore[arg-type]
    before, after = (work_of(each.symbol, each.args) for each in (model, made))
    assert after.flops < before.flops
    assert after.traffic < before.traffic
    assert len(made.symbol.nodes()) == 4
