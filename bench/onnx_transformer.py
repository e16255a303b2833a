"""The benchmark's transformer: layers as exporters write them, in small operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 8


class _Layers:
    """Adds operators with their constants to a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.prefix = ""

    def constant(self, name: str, array: object) -> str:
        """Add a constant under the name of the layer."""
        made = f"{self.prefix}.{name}"
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), made))
        return made

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """Add an operator and return its output."""
        output = f"/{self.prefix}/{op}_{len(self.graph.node)}"
        self.graph.node.append(
            helper.make_node(op, inputs, [f"{output}_output_0"], output, **attributes)
        )
        return f"{output}_output_0"

    def number(self, value: float) -> str:
        """Add a constant of one element, as exporters do for each use."""
        return self.constant(f"number{len(self.graph.initializer)}", np.float32(value))

    def linear(self, data: str, name: str) -> str:
        """Add a matrix product and a sum."""
        weight = self.constant(f"{name}.weight", np.full((WIDTH, WIDTH), 0.125, np.float32))
        bias = self.constant(f"{name}.bias", np.zeros(WIDTH, np.float32))
        return self.add("Add", bias, self.add("MatMul", data, weight))

    def normalized(self, data: str, name: str) -> str:
        """Add a layer normalization in nine operators."""
        difference = self.add("Sub", data, self.add("ReduceMean", data, axes=[-1]))
        square = self.add("Pow", difference, self.number(2))
        variance = self.add("Add", self.add("ReduceMean", square, axes=[-1]), self.number(1e-5))
        normal = self.add("Div", difference, self.add("Sqrt", variance))
        scaled = self.add(
            "Mul", normal, self.constant(f"{name}.weight", np.ones(WIDTH, np.float32))
        )
        return self.add("Add", scaled, self.constant(f"{name}.bias", np.zeros(WIDTH, np.float32)))

    def heads(self, data: str, name: str) -> str:
        """Split the features into heads."""
        sizes = self.constant(f"{name}.sizes{len(self.graph.node)}", np.array([1, -1, 2, 4]))
        return self.add("Transpose", self.add("Reshape", data, sizes), perm=[0, 2, 1, 3])

    def gelu(self, data: str) -> str:
        """Add GELU in five operators."""
        erf = self.add("Erf", self.add("Div", data, self.number(2**0.5)))
        product = self.add("Mul", data, self.add("Add", erf, self.number(1)))
        return self.add("Mul", product, self.number(0.5))

    def layer(self, number: int, data: str) -> str:
        """Add one layer: attention, then two linear layers with GELU between them."""
        self.prefix = f"layers.{number}"
        normal = self.normalized(data, "before")
        query, key, value = (
            self.heads(self.linear(normal, name), name) for name in ("query", "key", "value")
        )
        turned = self.add("Transpose", key, perm=[0, 1, 3, 2])
        scores = self.add("Div", self.add("MatMul", query, turned), self.number(2))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        sizes = self.constant("sizes", np.array([1, -1, WIDTH]))
        joined = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), sizes)
        data = self.add("Add", self.linear(joined, "out"), data)
        inner = self.gelu(self.linear(self.normalized(data, "after"), "up"))
        return self.add("Add", self.linear(inner, "down"), data)


def write_transformer(path: Path, nodes: int) -> int:
    """Write a transformer of many layers, whose linear layers, norms and GELU can be fused.

    Parameters
    ----------
    path : Path
    nodes : int
        Minimum number.

    Returns
    -------
    int
        Number of nodes.
    """
    graph = onnx.GraphProto(name="transformer")
    shape = (1, 6, WIDTH)
    graph.input.append(helper.make_tensor_value_info("data", TensorProto.FLOAT, shape))
    layers = _Layers(graph)
    value = "data"
    number = 0
    while len(graph.node) < nodes:
        value = layers.layer(number, value)
        number += 1
    graph.output.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, shape))
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return len(graph.node)
