"""Fusions of layers with what stands beside them, and of what moves elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from fusion_drawing import IMAGE, Drawing, fusion
from fusions_elementwise import silu


@fusion("MatMul and a factor", "FusedMatMul")
def _scaled_product(drawing: Drawing, x: str) -> str:
    turned = drawing("Transpose", x, perm=[0, 2, 1])
    scores = drawing("Mul", drawing("MatMul", x, turned), drawing.of(0.25))
    return str(drawing("MatMul", scores, x))


@fusion("MatMul of factors", "FusedMatMul")
def _factors_product(drawing: Drawing, x: str) -> str:
    left, right = drawing("Div", x, drawing.of(2)), drawing("Mul", x, drawing.of(0.25))
    scores = drawing("MatMul", left, drawing("Transpose", right, perm=[0, 2, 1]))
    return str(drawing("MatMul", drawing("Softmax", scores), x))


@fusion("MatMul of transposed weights", "MatMul Gemm")
def _turned_product(drawing: Drawing, x: str) -> str:
    return str(drawing("MatMul", x, drawing("Transpose", drawing.random(16, 16), perm=[1, 0])))


@fusion("MatMul of a Transpose of four axes", "FusedMatMul")
def _heads_product(drawing: Drawing, x: str) -> str:
    heads = drawing("Reshape", x, drawing.of([2, 8, 4, 4], np.int64))
    query = drawing("Transpose", heads, perm=[0, 2, 1, 3])
    key = drawing("Transpose", drawing("Relu", query), perm=[0, 1, 3, 2])
    scores = drawing("Softmax", drawing("Div", drawing("MatMul", query, key), drawing.of(2)))
    mixed = drawing("Transpose", drawing("MatMul", scores, query), perm=[0, 2, 1, 3])
    return str(drawing("Reshape", mixed, drawing.of([2, 8, 16], np.int64)))


@fusion("MatMul and Add", "Gemm MatMul")
def product_and_sum(drawing: Drawing, x: str) -> str:
    product = drawing("MatMul", x, drawing.random(16, 16))
    return str(drawing("Add", product, drawing.random(16)))


for _name in ("Relu", "Sigmoid", "Tanh", "LeakyRelu"):

    @fusion(f"Gemm and {_name}", "FusedGemm", (8, 16))
    def _gemm(drawing: Drawing, x: str, name: str = _name) -> str:
        return str(drawing(name, drawing("Gemm", x, drawing.random(16, 16), drawing.random(16))))

    @fusion(f"MatMul, Add and {_name}", "FusedGemm", (8, 16))
    def _gemm_of_matmul(drawing: Drawing, x: str, name: str = _name) -> str:
        return str(drawing(name, product_and_sum(drawing, x)))


@fusion("Gemm and sum", "Gemm FusedGemm", (8, 16))
def _gemm_sum(drawing: Drawing, x: str) -> str:
    product = drawing("Gemm", x, drawing.random(16, 16))
    return str(drawing("Add", product, drawing("Relu", x)))


@fusion("Gemm and Transpose", "Gemm", (16, 16))
def _gemm_transpose(drawing: Drawing, x: str) -> str:
    turned = drawing("Transpose", x, perm=[1, 0])
    product = drawing("Gemm", turned, drawing.random(16, 16), drawing.random(16))
    return str(drawing("Transpose", product, perm=[1, 0]))


@fusion("MatMul and BatchNormalization", "Gemm MatMul", (8, 16))
def _matmul_bn(drawing: Drawing, x: str) -> str:
    product = drawing("MatMul", x, drawing.random(16, 16))
    statistics = [drawing.random(16) for _ in range(4)]
    return str(drawing("BatchNormalization", product, *statistics))


def conv(drawing: Drawing, x: str, **attributes: Any) -> str:
    weights = drawing.random(16, 16, 3, 3), drawing.random(16)
    return str(drawing("Conv", x, *weights, pads=[1] * 4, **attributes))


for _name, _more in (
    ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.1}),
    ("HardSigmoid", {"alpha": 0.2}), ("Clip", {}), ("HardSwish", {}),
):  # fmt: skip

    @fusion(f"Conv and {_name}", "Conv" if _name == "HardSwish" else "FusedConv", IMAGE)
    def _conv_activation(drawing: Drawing, x: str, name: str = _name, more: Any = _more) -> str:
        bounds = (drawing.of(0), drawing.of(6)) if name == "Clip" else ()
        return str(drawing(name, conv(drawing, x), *bounds, **more))


@fusion("Conv, Add and Relu", "Conv", IMAGE)
def _conv_add_relu(drawing: Drawing, x: str) -> str:
    return str(drawing("Relu", drawing("Add", conv(drawing, x), drawing("Sigmoid", x))))


for _op in ("Add", "Mul"):

    @fusion(f"Conv and {_op}", "Conv", IMAGE)
    def _conv_arithmetic(drawing: Drawing, x: str, op: str = _op) -> str:
        return str(drawing(op, conv(drawing, x), drawing.random(16, 1, 1)))


@fusion("Conv and BatchNormalization", "FusedConv", IMAGE)
def _conv_bn(drawing: Drawing, x: str) -> str:
    statistics = [drawing.random(16) for _ in range(4)]
    return str(drawing("Relu", drawing("BatchNormalization", conv(drawing, x), *statistics)))


@fusion("Pad and Conv", "Conv", IMAGE)
def _pad_conv(drawing: Drawing, x: str) -> str:
    padded = drawing("Pad", x, drawing.of([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    return str(drawing("Conv", padded, drawing.random(16, 16, 3, 3)))


@fusion("hard swish of Conv", "Conv", IMAGE)
def _hard_swish(drawing: Drawing, x: str) -> str:
    made = conv(drawing, x)
    moved = drawing("Add", made, drawing.of(3))
    cut = drawing("Clip", moved, drawing.of(0), drawing.of(6))
    return str(drawing("Div", drawing("Mul", made, cut), drawing.of(6)))


@fusion("SiLU of Conv", "QuickGelu", IMAGE)
def _silu_conv(drawing: Drawing, x: str) -> str:
    return silu(drawing, conv(drawing, x))


@fusion("Relu and Clip", "Clip")
def _relu_clip(drawing: Drawing, x: str) -> str:
    return str(drawing("Clip", drawing("Relu", x), drawing.of(-1), drawing.of(6)))


@fusion("reciprocal", "Div")
def _reciprocal(drawing: Drawing, x: str) -> str:
    return str(drawing("Mul", drawing("Div", drawing.of(1), drawing("Exp", x)), x))


@fusion("Not and Where", "Where")
def _not_where(drawing: Drawing, x: str) -> str:
    where = drawing("Not", drawing("Less", x, drawing.of(0)))
    return str(drawing("Where", where, x, drawing("Exp", x)))


@fusion("Gather to Split", "Split")
def _gather_split(drawing: Drawing, x: str) -> str:
    stacked = drawing("Reshape", x, drawing.of([2, 8, 2, 8], np.int64))
    parts = [drawing("Gather", stacked, drawing.of(i, np.int64), axis=2) for i in (0, 1)]
    first = drawing("Relu", parts[0])
    return str(drawing("Concat", drawing("Mul", first, parts[1]), parts[0], axis=2))


@fusion("Gather to Slice", "Slice", sizes=("N", "S", 16))
def _gather_slice(drawing: Drawing, x: str) -> str:
    length = drawing("Gather", drawing("Shape", x), drawing.of(1, np.int64))
    end = drawing("Sub", length, drawing.of(1, np.int64))
    rows = drawing("Range", drawing.of(0, np.int64), end, drawing.of(1, np.int64))
    return str(drawing("Gather", x, rows, axis=1))


@fusion("SpaceToDepth", "SpaceToDepth", IMAGE)
def _space_to_depth(drawing: Drawing, x: str) -> str:
    parts = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        bounds = (drawing.of(each, np.int64) for each in ([row, column], [99, 99], [2, 3], [2, 2]))
        parts.append(drawing("Slice", x, *bounds))
    joined = drawing("Concat", *parts, axis=1)
    return str(drawing("Conv", joined, drawing.random(16, 64, 1, 1)))


@fusion("Cast twice", "Sqrt")
def _cast_twice(drawing: Drawing, x: str) -> str:
    halves = drawing("Cast", x, to=TensorProto.FLOAT16)
    return str(drawing("Cast", drawing("Sqrt", halves), to=TensorProto.FLOAT))


@fusion("Dropout and bias", "Add")
def _bias_dropout(drawing: Drawing, x: str) -> str:
    dropped = drawing("Dropout", drawing("Add", x, drawing.random(16)))
    return str(drawing("Add", dropped, x))


@fusion("Softmax and bias", "Softmax")
def _bias_softmax(drawing: Drawing, x: str) -> str:
    return str(drawing("Softmax", drawing("Add", x, drawing.random(8, 16)), axis=-1))
