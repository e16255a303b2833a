"""Networks to plant faults in: ResNet-50, one with nested graphs, and random numbers beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

FLOAT = TensorProto.FLOAT


class _Builder:
    """Nodes and weights of a graph."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._generator = np.random.default_rng(0)

    def weight(self, name: str, value: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def random(self, name: str, *shape: int, deviation: float = 1) -> str:
        values = deviation * self._generator.standard_normal(shape)
        return self.weight(name, values.astype(np.float32))

    def node(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def convolution(self, value: str, name: str, sizes: tuple[int, int, int], stride: int) -> str:
        """Add a convolution of (inputs, outputs, kernel) with its batch normalization."""
        before, after, kernel = sizes
        deviation = float(np.sqrt(2 / (before * kernel * kernel)))
        weight = self.random(f"{name}_w", after, before, kernel, kernel, deviation=deviation)
        pads = [kernel // 2] * 4
        value = self.node(
            "Conv",
            [value, weight],
            name,
            strides=[stride] * 2,
            pads=pads,
            kernel_shape=[kernel] * 2,
        )
        numbers = {"scale": 1, "bias": 0, "mean": 0, "var": 1}
        given = [
            self.weight(f"{name}_{key}", np.full(after, number, np.float32))
            for key, number in numbers.items()
        ]
        return self.node("BatchNormalization", [value, *given], f"{name}_bn", epsilon=1e-5)

    def model(self, inputs: list[Any], outputs: list[Any]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.weights)
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def resnet50(width: int = 64, size: int = 32) -> onnx.ModelProto:
    """Return ResNet-50 with random weights, which normalizes its input and ends with Softmax.

    Source: K. He et al., Deep Residual Learning for Image Recognition (2015), table 1.

    Parameters
    ----------
    width : int
        Channels after the first convolution, 64 in the paper.
    size : int
        Height and width of the image.
    """
    build = _Builder()
    mean = build.weight("mean", np.full((1, 3, 1, 1), 0.4, np.float32))
    value = build.node("Sub", ["image", mean], "normalized")
    value = build.convolution(value, "stem", (3, width, 7), 2)
    value = build.node("Relu", [value], "stem_relu")
    value = build.node(
        "MaxPool", [value], "stem_pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
    )
    channels = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = width << stage
        for block in range(blocks):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            shortcut = value
            if not block:
                shortcut = build.convolution(
                    value, f"{name}_short", (channels, 4 * inner, 1), stride
                )
            value = build.convolution(value, f"{name}_a", (channels, inner, 1), 1)
            value = build.node("Relu", [value], f"{name}_a_relu")
            value = build.convolution(value, f"{name}_b", (inner, inner, 3), stride)
            value = build.node("Relu", [value], f"{name}_b_relu")
            value = build.convolution(value, f"{name}_c", (inner, 4 * inner, 1), 1)
            value = build.node("Add", [value, shortcut], f"{name}_add")
            value = build.node("Relu", [value], f"{name}_relu")
            channels = 4 * inner
    value = build.node("GlobalAveragePool", [value], "pool")
    rows = build.weight("rows", np.array([1, channels], np.int64))
    value = build.node("Reshape", [value, rows], "features")
    matrix = build.random("fc_w", channels, 1000, deviation=float(np.sqrt(1 / channels)))
    value = build.node("MatMul", [value, matrix], "logits")
    value = build.node("Softmax", [value], "probabilities", axis=1)
    return build.model(
        [helper.make_tensor_value_info("image", FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("probabilities", FLOAT, [1, 1000]),
         helper.make_tensor_value_info("logits", FLOAT, [1, 1000])],
    )  # fmt: skip


NESTED = """
<ir_version: 8, opset_import: ["" : 17]>
nested (float[2, 8, 6, 6] x, bool choice) => (float[2, 288] y, float[2, 8, 6, 6] last)
{
   [y] y = If (choice) <
     then_branch = then () => (float[2, 288] t) {
       [conv] conv = Conv (last, w)
       [bn] bn = BatchNormalization <epsilon = 0.00001> (conv, scale, bias, mean, var)
       [relu] relu = Relu (bn)
       [add] add = Add (relu, last)
       [flat] flat = Reshape (add, rows)
       [less] less = Sub (flat, half)
       [t] t = Softmax <axis = 1> (less)
     },
     else_branch = else () => (float[2, 288] e) {
       [flat2] flat2 = Reshape (last, rows)
       [ended] ended, all = Loop (rounds, , flat2) <
         body = body (int64 i, bool go, float[2, 288] before)
           => (bool on, float[2, 288] after, float[2, 288] seen) {
           [on] on = Identity (go)
           [after] after = Sub (before, half)
           [seen] seen = Relu (after)
         }>
       [e] e = Relu (ended)
     }>
}
"""


def nested(count: int = 200) -> onnx.ModelProto:
    """Return a model of so many nodes, and a branch with operators of every kind."""
    build = _Builder()
    value = "x"
    for number in range(count):
        shift = build.random(f"shift{number}", 1, 8, 1, 1, deviation=0.05)
        value = build.node("Sub" if number % 2 else "Add", [value, shift], f"outer{number}")
    build.node("Identity", [value], "last")
    build.random("w", 8, 8, 1, 1)
    for name, number in {"scale": 1, "bias": 0, "mean": 0, "var": 0.5}.items():
        build.weight(name, np.full(8, number, np.float32))
    build.weight("rows", np.array([2, 288], np.int64))
    build.weight("half", np.linspace(0, 1, 288, dtype=np.float32))
    build.weight("rounds", np.array(2, np.int64))
    model = parser.parse_model(NESTED)
    outer = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*build.nodes, *outer])
    model.graph.initializer.extend(build.weights)
    return model


def with_second_output(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return a model that has a value with three axes of floats as an output too."""
    sizes = [f"{name}_{axis}" for axis in range(3)]
    model.graph.output.append(helper.make_tensor_value_info(name, FLOAT, sizes))
    return model


def with_noise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose last output is the difference of two random tensors."""
    for name in ("noise_a", "noise_b"):
        node = helper.make_node("RandomUniform", [], [name], name=name, shape=[8])
        model.graph.node.append(node)
    node = helper.make_node("Sub", ["noise_a", "noise_b"], ["noise"], name="noise")
    model.graph.node.append(node)
    model.graph.output.append(helper.make_tensor_value_info("noise", FLOAT, [8]))
    return model


def saved(model: onnx.ModelProto, path: Path) -> Path:
    """Check and write a model."""
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path
