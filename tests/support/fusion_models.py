"""ONNX models with the nodes that eight well-known fusions look for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def fusion_model(
    nodes: Sequence[onnx.NodeProto],
    shapes: tuple[Sequence[int], Sequence[int]],
    weights: Mapping[str, np.ndarray],
    opset: int = 20,
) -> onnx.ModelProto:
    """A model with the input x and the output y, of these shapes."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip("xy", shapes, strict=True)
    )
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "fusion", [x], [y], initializers)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def layer_norm_model(opset: int) -> onnx.ModelProto:
    """Return nine operators; from operator set 18 on the axes of ReduceMean are an input."""
    axes: dict[str, Any] = {"axes": [-1]} if opset < 18 else {}
    last = [] if opset < 18 else ["last"]
    constants = {"two": number(2), "e": number(1e-5), "scale": random(6), "b": random(6) + 1}
    return fusion_model(
        [
            node("ReduceMean", ["x", *last], ["mean"], name="mean", **axes),
            node("Sub", ["x", "mean"], ["d"], name="difference"),
            node("Pow", ["d", "two"], ["q"], name="square"),
            node("ReduceMean", ["q", *last], ["v"], name="variance", **axes),
            node("Add", ["v", "e"], ["ve"], name="sum"),
            node("Sqrt", ["ve"], ["s"], name="root"),
            node("Div", ["d", "s"], ["n"], name="norm"),
            node("Mul", ["n", "scale"], ["m"], name="scaled"),
            node("Add", ["m", "b"], ["y"], name="shifted"),
        ],
        ([2, 3, 6], [2, 3, 6]),
        constants | ({"last": np.array([-1])} if last else {}),
        opset,
    )


CONV = node("Conv", ["x", "w"], ["c"], name="conv", strides=[2, 2], pads=[1, 1, 1, 1])
CONV_WITH_BIAS = node("Conv", ["x", "w", "v"], ["c"], name="conv", strides=[2, 2], pads=[1] * 4)
CONV_SHAPES = ([1, 3, 8, 8], [1, 4, 4, 4])
MATRIX = ([2, 3], [2, 3])

FUSIONS: dict[str, tuple[str, onnx.ModelProto, list[str]]] = {
    "Conv and Add": (
        "fuseConvAdd",
        fusion_model(
            [CONV, node("Add", ["c", "b"], ["y"], name="add")],
            CONV_SHAPES,
            {"w": random(4, 3, 3, 3), "b": random(4, 1, 1)},
        ),
        ["Conv"],
    ),
    "Conv and Mul": (
        "fuseConvMul",
        fusion_model(
            [CONV, node("Mul", ["s", "c"], ["y"], name="mul")],
            CONV_SHAPES,
            {"w": random(4, 3, 3, 3), "s": random(1, 4, 1, 1)},
        ),
        ["Conv"],
    ),
    "Conv with a bias, and Add": (
        "fuseConvAdd",
        fusion_model(
            [CONV_WITH_BIAS, node("Add", ["c", "a"], ["y"], name="add")],
            CONV_SHAPES,
            {"w": random(4, 3, 3, 3), "v": random(4), "a": number(0.75)},
        ),
        ["Conv"],
    ),
    "Conv with a bias, and Mul": (
        "fuseConvMul",
        fusion_model(
            [CONV_WITH_BIAS, node("Mul", ["s", "c"], ["y"], name="mul")],
            CONV_SHAPES,
            {"w": random(4, 3, 3, 3), "v": random(4), "s": number(0.75).reshape(1)},
        ),
        ["Conv"],
    ),
    "MatMul and Add": (
        "fuseGemm",
        fusion_model(
            [
                node("MatMul", ["x", "w"], ["c"], name="mm"),
                node("Add", ["b", "c"], ["y"], name="add"),
            ],
            ([2, 3], [2, 5]),
            {"w": random(3, 5), "b": random(5)},
        ),
        ["Gemm"],
    ),
    "GELU with Erf": (
        "fuseGelu",
        fusion_model(
            [
                node("Div", ["x", "root"], ["a"], name="div"),
                node("Erf", ["a"], ["e"], name="erf"),
                node("Add", ["e", "one"], ["p"], name="plus"),
                node("Mul", ["x", "p"], ["m"], name="mul"),
                node("Mul", ["m", "half"], ["y"], name="gelu"),
            ],
            MATRIX,
            {"root": number(2**0.5), "one": number(1), "half": number(0.5)},
        ),
        ["Gelu"],
    ),
    "GELU with Tanh": (
        "fuseGelu",
        fusion_model(
            [
                node("Pow", ["x", "three"], ["cube"], name="cube"),
                node("Mul", ["cube", "k"], ["a"], name="a"),
                node("Add", ["x", "a"], ["b"], name="b"),
                node("Mul", ["b", "root"], ["i"], name="inner"),
                node("Tanh", ["i"], ["t"], name="tanh"),
                node("Add", ["one", "t"], ["p"], name="plus"),
                node("Mul", ["x", "p"], ["m"], name="mul"),
                node("Mul", ["half", "m"], ["y"], name="gelu"),
            ],
            MATRIX,
            {
                "three": number(3),
                "k": number(0.044715),
                "root": number((2 / np.pi) ** 0.5),
                "one": number(1),
                "half": number(0.5),
            },
        ),
        ["Gelu"],
    ),
    "layer normalization": ("fuseLayerNorm", layer_norm_model(17), ["LayerNormalization"]),
    "layer normalization, axes as an input": (
        "fuseLayerNorm",
        layer_norm_model(18),
        ["LayerNormalization"],
    ),
    "two Transpose": (
        "mergeTransposes",
        fusion_model(
            [
                node("Transpose", ["x"], ["t"], name="first", perm=[2, 0, 1]),
                node("Transpose", ["t"], ["u"], name="second", perm=[0, 2, 1]),
                node("Relu", ["u"], ["y"], name="relu"),
            ],
            ([2, 3, 4], [4, 3, 2]),
            {},
        ),
        ["Transpose", "Relu"],
    ),
    "Transpose and its inverse": (
        "mergeTransposes",
        fusion_model(
            [
                node("Transpose", ["x"], ["t"], name="first", perm=[2, 0, 1]),
                node("Transpose", ["t"], ["u"], name="second", perm=[1, 2, 0]),
                node("Relu", ["u"], ["y"], name="relu"),
            ],
            ([2, 3, 4], [2, 3, 4]),
            {},
        ),
        ["Relu"],
    ),
    "two Reshape": (
        "joinReshapes",
        fusion_model(
            [
                node("Reshape", ["x", "s1"], ["t"], name="first"),
                node("Reshape", ["t", "s2"], ["y"], name="second"),
            ],
            ([2, 3, 4], [4, 6]),
            {"s1": np.array([6, 4]), "s2": np.array([4, -1])},
        ),
        ["Reshape"],
    ),
    "SiLU": (
        "fuseSilu",
        fusion_model(
            [
                node("Sigmoid", ["x"], ["s"], name="sigmoid"),
                node("Mul", ["s", "x"], ["y"], name="mul"),
            ],
            MATRIX,
            {},
        ),
        ["QuickGelu"],
    ),
}
"""By title: the pass, the model, and the operators afterwards."""
