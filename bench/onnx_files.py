"""The benchmark's ONNX models: a chain of any length, and ResNet-152 by passlib's own lowering."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import passlib
from run import RESNET

LAYER = 10
"""Nodes that `_add_layer` adds."""


def _add_layer(graph: onnx.GraphProto, number: int, data: str) -> str:
    """Add convolutions with a shortcut, and a linear layer between two shapes, as exporters do."""
    name = f"layers.{number}"
    weights = {
        "conv1.weight": np.full((8, 8, 1, 1), number, np.float32),
        "conv1.bias": np.full(8, 0.5, np.float32),
        **{f"bn.{kind}": np.ones(8, np.float32) for kind in ("weight", "bias", "mean", "var")},
        "conv2.weight": np.full((8, 8, 1, 1), 0.25, np.float32),
        "linear.weight": np.full((8, 8), 0.125, np.float32),
        "linear.bias": np.zeros(8, np.float32),
    }
    for weight, array in weights.items():
        graph.initializer.append(numpy_helper.from_array(array, f"{name}.{weight}"))

    def add(op: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> str:
        output = f"/{name}/{op}_{len(graph.node)}_output_0"
        inputs = [f"{name}.{text}" if text in weights else text for text in inputs]
        label = output.removesuffix("_output_0")
        graph.node.append(helper.make_node(op, inputs, [output], label, **attributes))
        kind = TensorProto.INT64 if op == "Constant" else TensorProto.FLOAT
        graph.value_info.append(helper.make_tensor_value_info(output, kind, shape))
        return output

    image, rows = (1, 8, 4, 4), (16, 8)
    window = {
        "dilations": [1, 1],
        "group": 1,
        "kernel_shape": [1, 1],
        "pads": [0, 0, 0, 0],
        "strides": [1, 1],
    }
    first = add("Conv", [data, "conv1.weight", "conv1.bias"], image, **window)
    statistics = ["bn.weight", "bn.bias", "bn.mean", "bn.var"]
    normal = add("BatchNormalization", [first, *statistics], image, epsilon=1e-5, momentum=0.9)
    active = add("Relu", [normal], image)
    second = add("Conv", [active, "conv2.weight"], image, **window)
    both = add("Add", [second, data], image)
    shape = add("Constant", [], (2,), value=numpy_helper.from_array(np.array([-1, 8])))
    flat = add("Reshape", [both, shape], rows, allowzero=0)
    linear = add("Gemm", [flat, "linear.weight", "linear.bias"], rows, alpha=1.0, transB=1)
    back = add("Constant", [], (4,), value=numpy_helper.from_array(np.array(image)))
    return add("Reshape", [linear, back], image, allowzero=0)


def write_layers(path: Path, nodes: int) -> int:
    """Write a chain of convolutions, normalizations and linear layers, all named and typed.

    Parameters
    ----------
    path : Path
    nodes : int
        Minimum number; ten are added at a time, with nine initializers.

    Returns
    -------
    int
        Number of nodes.
    """
    graph = onnx.GraphProto(name="layers")
    graph.input.append(helper.make_tensor_value_info("data", TensorProto.FLOAT, (1, 8, 4, 4)))
    value = "data"
    for number in range(-(-nodes // LAYER)):
        value = _add_layer(graph, number, value)
    graph.output.append(graph.value_info.pop())
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return len(graph.node)


def write_resnet(path: Path) -> int:
    """Write ResNet-152, lowered from MXNet's model, with weights that keep values in range.

    Returns
    -------
    int
        Number of nodes.
    """
    symbol = passlib.sym.load(RESNET)
    shape = (1, 3, 224, 224)
    shapes, _, states = symbol.infer_shape(data=shape)
    random = np.random.default_rng(0)

    def values(name: str, size: tuple[int, ...]) -> np.ndarray:
        if name.endswith("weight"):
            scale = np.sqrt(2 / np.prod(size[1:]))
            return (random.standard_normal(size, np.float32) * scale).astype(np.float32)
        return np.full(size, 1 if name.endswith(("gamma", "var")) else 0, np.float32)

    args = {
        name: values(name, size)
        for name, size in zip(symbol.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    aux = {
        name: values(name, size)
        for name, size in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    passlib.Model(symbol, args, aux).to_onnx(path, {"data": shape})
    return len(onnx.load(path, load_external_data=False).graph.node)
