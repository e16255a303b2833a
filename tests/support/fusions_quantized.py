"""Fusions of quantized operators, of attention and of embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from fusion_drawing import IMAGE, Drawing, fusion
from fusions_elementwise import layer_norm


def _quantized(drawing: Drawing, value: str, scale: float = 0.05) -> str:
    point = drawing.of(scale), drawing.of(128, np.uint8)
    return str(drawing("DequantizeLinear", drawing("QuantizeLinear", value, *point), *point))


def _quantized_weights(drawing: Drawing, *shape: int) -> str:
    numbers = drawing.random(*shape, dtype=np.uint8)
    return str(drawing("DequantizeLinear", numbers, drawing.of(0.02), drawing.of(128, np.uint8)))


@fusion("QLinearConv", "QLinearConv", IMAGE)
def _qlinear_conv(drawing: Drawing, x: str) -> str:
    numbers = drawing.random(16, dtype=np.int32)
    bias = drawing("DequantizeLinear", numbers, drawing.of(0.001), drawing.of(0, np.int32))
    made = drawing(
        "Conv",
        _quantized(drawing, x),
        _quantized_weights(drawing, 16, 16, 3, 3),
        bias,
        pads=[1] * 4,
    )
    return _quantized(drawing, made)


@fusion("QLinearMatMul", "QLinearMatMul")
def _qlinear_matmul(drawing: Drawing, x: str) -> str:
    weights = _quantized_weights(drawing, 16, 16)
    return _quantized(drawing, drawing("MatMul", _quantized(drawing, x), weights))


@fusion("QGemm", "QGemm", (8, 16))
def _qgemm(drawing: Drawing, x: str) -> str:
    numbers = drawing.random(16, dtype=np.int32)
    bias = drawing("DequantizeLinear", numbers, drawing.of(0.001), drawing.of(0, np.int32))
    weights = _quantized_weights(drawing, 16, 16)
    return _quantized(drawing, drawing("Gemm", _quantized(drawing, x), weights, bias))


for _op in ("Add", "Mul"):

    @fusion(f"QLinear{_op}", f"QLinear{_op}")
    def _qlinear_binary(drawing: Drawing, x: str, op: str = _op) -> str:
        left, right = _quantized(drawing, x), _quantized(drawing, drawing("Relu", x))
        return _quantized(drawing, drawing(op, left, right))


for _op in ("Sigmoid", "LeakyRelu", "Softmax"):

    @fusion(f"QLinear{_op}", f"QLinear{_op}")
    def _qlinear_unary(drawing: Drawing, x: str, op: str = _op) -> str:
        return _quantized(drawing, drawing(op, _quantized(drawing, x)))


@fusion("QLinearConcat", "QLinearConcat")
def _qlinear_concat(drawing: Drawing, x: str) -> str:
    # Integers of one scale move through Concat without the scale.
    halves = drawing("Split", x, axis=1, outputs=2)
    parts = [_quantized(drawing, half, s) for half, s in zip(halves, (0.05, 0.04), strict=True)]
    return _quantized(drawing, drawing("Concat", *parts, axis=1))


@fusion("QLinearAveragePool", "QLinearAveragePool", IMAGE)
def _qlinear_pool(drawing: Drawing, x: str) -> str:
    made = drawing("AveragePool", _quantized(drawing, x), kernel_shape=[3, 3], pads=[1] * 4)
    return _quantized(drawing, made)


@fusion("Reshape and Transpose of quantized values", "QLinearMatMul")
def _quantized_moves(drawing: Drawing, x: str) -> str:
    turned = drawing("Transpose", _quantized(drawing, x), perm=[0, 2, 1])
    again = _quantized(drawing, turned)
    product = drawing("MatMul", _quantized_weights(drawing, 16, 16), again)
    back = drawing("Transpose", _quantized(drawing, product), perm=[0, 2, 1])
    return _quantized(drawing, back)


@fusion("DynamicQuantizeMatMul", "DynamicQuantizeMatMul")
def _dynamic_matmul(drawing: Drawing, x: str) -> str:
    made, scale, zero = drawing("DynamicQuantizeLinear", x, outputs=3)
    weights = drawing.random(16, 16, dtype=np.int8), zero, drawing.of(0, np.int8)
    product = drawing("Cast", drawing("MatMulInteger", made, *weights), to=TensorProto.FLOAT)
    scaled = drawing("Mul", product, drawing("Mul", scale, drawing.of(0.02)))
    return str(drawing("Add", scaled, drawing.random(16)))


@fusion("MatMulIntegerToFloat", "MatMulIntegerToFloat")
def _integer_matmul(drawing: Drawing, x: str) -> str:
    made, scale, zero = drawing("DynamicQuantizeLinear", x, outputs=3)
    sums = []
    for size in (0.02, 0.03):
        weights = drawing.random(16, 16, dtype=np.int8), zero, drawing.of(0, np.int8)
        product = drawing("Cast", drawing("MatMulInteger", made, *weights), to=TensorProto.FLOAT)
        scaled = drawing("Mul", product, drawing("Mul", scale, drawing.of(size)))
        sums.append(drawing("Add", scaled, drawing.random(16)))
    return str(drawing("Mul", *sums))


def _heads(drawing: Drawing, value: str, order: Sequence[int], shape: str) -> str:
    product = drawing("MatMul", value, drawing.random(16, 16))
    biased = drawing("Add", product, drawing.random(16))
    return str(drawing("Transpose", drawing("Reshape", biased, shape), perm=order))


def _attention(drawing: Drawing, x: str, mask: str) -> str:
    shape = drawing.of([0, 0, 4, 4], np.int64)
    query = _heads(drawing, x, [0, 2, 1, 3], shape)
    key = _heads(drawing, x, [0, 2, 3, 1], shape)
    value = _heads(drawing, x, [0, 2, 1, 3], shape)
    scores = drawing("Div", drawing("MatMul", query, key), drawing.of(2))
    wide = drawing.unsqueeze(drawing.unsqueeze(mask, 1), 2)
    seen = drawing("Cast", wide, to=TensorProto.FLOAT)
    hidden = drawing("Mul", drawing("Sub", drawing.of(1), seen), drawing.of(-10000))
    shares = drawing("Softmax", drawing("Add", scores, hidden), axis=3)
    mixed = drawing("Transpose", drawing("MatMul", shares, value), perm=[0, 2, 1, 3])
    joined = drawing("Reshape", mixed, drawing.of([0, 0, 16], np.int64))
    product = drawing("MatMul", joined, drawing.random(16, 16))
    return str(drawing("Add", drawing("Add", product, drawing.random(16)), x))


@fusion("Attention", "Attention", opset=12, sizes=("N", "S", 16))
def _bert_attention(drawing: Drawing, x: str) -> str:
    mask = drawing.feed(("N", "S"), TensorProto.INT64)
    normal = layer_norm(drawing, x)
    return layer_norm(drawing, _attention(drawing, normal, mask))


@fusion("EmbedLayerNormalization", "EmbedLayerNormalization", opset=12, sizes=("N", "S", 16))
def _embedding(drawing: Drawing, x: str) -> str:
    tokens = drawing.feed(("N", "S"), TensorProto.INT64)
    segments = drawing.feed(("N", "S"), TensorProto.INT64)
    mask = drawing.feed(("N", "S"), TensorProto.INT64)
    words = drawing("Gather", drawing.random(20, 16), tokens)
    kinds = drawing("Gather", drawing.random(2, 16), segments)
    length = drawing("Gather", drawing("Shape", tokens), drawing.of(1, np.int64))
    first, step = drawing.of(0, np.int64), drawing.of(1, np.int64)
    rows = drawing.unsqueeze(drawing("Range", first, length, step), 0)
    numbers = drawing("Expand", rows, drawing("Shape", tokens))
    places = drawing("Gather", drawing.random(8, 16), numbers)
    both = drawing("Add", drawing("Add", words, places), kinds)
    normal = layer_norm(drawing, both)
    return str(drawing("Mul", layer_norm(drawing, _attention(drawing, normal, mask)), x))


@fusion("LabelEncoder twice", "LabelEncoder", (8, 16))
def _label_encoders(drawing: Drawing, x: str) -> str:
    kinds = drawing("Cast", x, to=TensorProto.INT64)
    first = drawing("ai.onnx.ml.LabelEncoder", kinds, keys_int64s=[0, 1], values_strings=["a", "b"])
    second = drawing(
        "ai.onnx.ml.LabelEncoder", first, keys_strings=["a", "b"], values_floats=[3.0, 4.0]
    )
    return str(drawing("Mul", second, x))
