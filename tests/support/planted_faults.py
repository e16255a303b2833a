"""Passes that make many right rewrites and a wrong one, and models for them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import passlib as pl

SIZE = 4


def block_model(path: Path, blocks: int) -> pl.Model:
    """Write and load a chain of residual blocks with a head that has the operators of `FAULTS`."""
    generator = np.random.default_rng(1)
    nodes, weights = [], []

    def weight(name: str, value: Any) -> str:
        weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    value = "x"
    for i in range(blocks):
        kernel = generator.standard_normal((SIZE, SIZE, 1, 1)).astype(np.float32) / 2
        names = [weight(f"w{i}", kernel)]
        nodes.append(helper.make_node("Conv", [value, *names], [f"c{i}"], name=f"conv{i}"))
        scale = {"scale": 5 / max(blocks, 10), "bias": 0.1, "mean": 0.0, "var": 0.25}
        given = [
            weight(f"{key}{i}", np.full(SIZE, number, np.float32)) for key, number in scale.items()
        ]
        nodes.append(
            helper.make_node(
                "BatchNormalization", [f"c{i}", *given], [f"b{i}"], name=f"bn{i}", epsilon=0.1
            )
        )
        nodes.append(helper.make_node("Relu", [f"b{i}"], [f"r{i}"], name=f"relu{i}"))
        nodes.append(helper.make_node("Add", [f"r{i}", value], [f"a{i}"], name=f"add{i}"))
        value = f"a{i}"
    weight("rows", np.array([-1, SIZE * 9], np.int64))
    weight("matrix", generator.standard_normal((SIZE * 9,) * 2).astype(np.float32) / 9)
    weight("half", np.full(SIZE * 9, 0.5, np.float32))
    nodes += [
        helper.make_node("Reshape", [value, "rows"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "matrix"], ["product"], name="product"),
        helper.make_node("Sub", ["product", "half"], ["less"], name="subtract"),
        helper.make_node("Cast", ["less"], ["wide"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Softmax", ["wide"], ["y"], name="softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, SIZE, 3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, SIZE * 9])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return pl.load(path)


def _zero_weight(graph: pl.Graph) -> None:
    graph.args["w0"] = np.zeros_like(graph.args["w0"])


def _transposed_weight(graph: pl.Graph) -> None:
    graph.args["matrix"] = graph.args["matrix"].T


def _dropped_add(graph: pl.Graph) -> None:
    node = graph.find("add0")
    graph.replace(node.outputs[0], node.inputs[0])
    graph.remove(node)


def _wrong_axis(graph: pl.Graph) -> None:
    graph.find("softmax").attrs["axis"] = "0"


def _swapped_inputs(graph: pl.Graph) -> None:
    node = graph.find("subtract")
    graph.set_inputs(node, list(reversed(node.inputs)))


def _lost_epsilon(graph: pl.Graph) -> None:
    del graph.find("bn0").attrs["epsilon"]


def _wrong_type(graph: pl.Graph) -> None:
    graph.find("cast").attrs["to"] = str(TensorProto.DOUBLE)


def _shape_off_by_one(graph: pl.Graph) -> None:
    graph.args["rows"] = np.array([-1, SIZE * 9 + 1], np.int64)


def _overflowing_cast(graph: pl.Graph) -> None:
    node = graph.find("subtract")
    low = graph.add_node("Cast", [node.outputs[0]], {"to": str(TensorProto.INT8)}, name="low")
    high = graph.add_node("Cast", [low.outputs[0]], {"to": str(TensorProto.FLOAT)}, name="high")
    graph.connect(high.outputs[0], graph.find("cast"), 0)


def _crash(graph: pl.Graph) -> None:
    if graph.find("subtract") is not None:
        raise ZeroDivisionError("no attribute is as expected")


FAULTS: dict[str, tuple[Callable[[pl.Graph], None], str]] = {
    "zero_weight": (_zero_weight, "weight w0"),
    "transposed_weight": (_transposed_weight, "weight matrix"),
    "dropped_add": (_dropped_add, "add0 (Add)"),
    "wrong_axis": (_wrong_axis, "softmax (Softmax)"),
    "swapped_inputs": (_swapped_inputs, "subtract (Sub): input 0"),
    "lost_epsilon": (_lost_epsilon, "bn0 (BatchNormalization)"),
    "wrong_type": (_wrong_type, "cast (Cast)"),
    "shape_off_by_one": (_shape_off_by_one, "weight rows"),
    "overflowing_cast": (_overflowing_cast, "low (Cast)"),
}
"""Each fault, and what the guilty rewrite must name."""

RAISING = _crash


EQUAL: dict[str, tuple[str, dict[str, str]]] = {
    "Activation": ("relu", {}),
    "Add": ("Sum", {}),
    "Relu": ("LeakyRelu", {"alpha": "0.0"}),
}
"""Operators that compute the same; all activations of the models are ReLUs."""


def plant(name: str, fault: Callable[[pl.Graph], None] | None, operator: str = "Relu") -> str:
    """Register a pass that replaces each node of an operator by an equal one, and makes a fault.

    Returns
    -------
    str
        The name of the pass.
    """

    def rewrite(graph: pl.Graph) -> None:
        """Replaces nodes."""
        if fault is not None:
            # A reduced model need not have the place of the fault.
            with contextlib.suppress(AttributeError, KeyError):
                fault(graph)
        for node in graph.sorted():
            if node.op == operator:
                other, attrs = EQUAL[operator]
                made = graph.add_node(other, list(node.inputs), attrs, name=f"{node.name}_new")
                graph.replace(node.outputs[0], made.outputs[0])
                graph.remove(node)

    rewrite.__name__ = f"planted_{name}"
    pl.graph_pass(name=f"planted_{name}", replace=True)(rewrite)
    return f"planted_{name}"


RANDOM = """
<ir_version: 8, opset_import: ["" : 17]>
random () => (float[8] y)
{
   a = RandomUniform <shape = [8]> ()
   b = RandomUniform <shape = [8]> ()
   c = Relu(a)
   d = Relu(b)
   y = Sub(c, d)
}
"""
