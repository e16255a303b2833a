"""Models for pages: stacks of encoder layers, and what a careless pass makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import passlib as pl

SIZE = 8
NODES_OF_LAYER = 19


def encoder(path: Path, layers: int, *, edited: bool = False) -> pl.Model:
    """Write and load a model of equal layers.

    Edited, every seventh layer has another Identity, every ninth no Dropout, layer 5 another axis
    and layer 6 another weight.
    """
    generator = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights = []

    def weight(name: str, *shape: int) -> str:
        value = generator.standard_normal(shape).astype(np.float32)
        weights.append(numpy_helper.from_array(value, name))
        return name

    def node(op: str, inputs: list[str], name: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def linear(value: str, name: str) -> str:
        product = node("MatMul", [value, weight(f"{name}.w", SIZE, SIZE)], f"{name}/MatMul")
        return node("Add", [product, weight(f"{name}.b", SIZE)], f"{name}/Add")

    value = "x"
    for i in range(layers):
        name = f"layer.{i}"
        scale, shift = weight(f"{name}/ln.w", SIZE), weight(f"{name}/ln.b", SIZE)
        normal = node("LayerNormalization", [value, scale, shift], f"{name}/ln")
        query, key, content = (linear(normal, f"{name}/{each}") for each in "qkv")
        key = node("Transpose", [key], f"{name}/turn", perm=[0, 2, 1])
        scores = node("MatMul", [query, key], f"{name}/scores")
        if edited and i % 7 == 3:
            scores = node("Identity", [scores], f"{name}/extra")
        axis = 1 if edited and i == 5 else -1
        scores = node("Softmax", [scores], f"{name}/softmax", axis=axis)
        content = node("MatMul", [scores, content], f"{name}/context")
        if not (edited and i % 9 == 2):
            content = node("Dropout", [content], f"{name}/dropout")
        value = node("Add", [linear(content, f"{name}/o"), value], f"{name}/residual")
        inner = node("Relu", [linear(value, f"{name}/m")], f"{name}/relu")
        value = node("Add", [inner, value], f"{name}/end")
    if edited:
        changed = next(each for each in weights if each.name == "layer.6/m.w")
        changed.CopyFrom(numpy_helper.from_array(np.zeros((SIZE, SIZE), np.float32), changed.name))
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, SIZE])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return pl.load(path)
