"""Small ONNX models for the tests, in ONNX's text format or built from parts, and their inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

import passlib

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
"""The beginning of a model in text."""

NESTED = """
<ir_version: 8, opset_import: ["" : 17]>
nested (float[N, 4] x, bool c) => (float[N, 4] y)
<float[4] w = {1.0, 2.0, 3.0, 4.0}>
{
   a = Identity(x)
   b = Add(a, w)
   y = If(c) <
     then_branch = outer_then () => (t) {
        bb = Identity(b)
        t = If(c) <then_branch = inner_then () => (t2) { t2 = Relu(bb) },
                   else_branch = inner_else () => (e2) { e2 = Mul(b, a) }>
     },
     else_branch = outer_else () => (e) { e = Sub(b, w) }>
}
"""

LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
loop (float[3] x, int64 n, float[3] step) => (float[3] last, float[K, 3] all)
{
   cond = Constant <value = bool {1}> ()
   twice = Add(step, step)
   last, all = Loop(n, cond, x) <
     body = body (int64 i, bool go, float[3] before) => (bool on, float[3] after, float[3] scan) {
        on = Identity(go)
        after = Add(before, twice)
        scan = Identity(after)
     }>
}
"""

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[N, 4] x) => (float[N, 4] y, float[N, 4] z)
<float[4] w = {1.0, 2.0, 3.0, 4.0}, int64[2] shape = {-1, 4}, float[N, 4] a>
{
   a = Relu(x)
   b = Add(a, w)
   c = Clip(b)
   d = Reshape(c, shape)
   y = Identity(d)
   z = Mul(a, d)
}
"""

TEXTS = {"nested": NESTED, "loop": LOOP, "chain": CHAIN}

X = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
_STEP = np.array([1, 2, 3], np.float32)

FEEDS: dict[str, list[dict[str, Any]]] = {
    "nested": [{"x": X, "c": np.array(c)} for c in (True, False)],
    "loop": [{"x": _STEP * 2, "n": np.array(n, np.int64), "step": _STEP} for n in (1, 3)],
    "chain": [{"x": X}],
}
"""Inputs for the models of `TEXTS`."""


def save(text: str, path: Path) -> Path:
    """Write a model given as text."""
    model = parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def saved(model: passlib.model.Model, path: Path) -> Any:
    """Save a model, have ONNX check it, and parse it."""
    model.save(path)
    onnx.checker.check_model(path, full_check=True)
    return onnx.load(path)


def behind_weight(array: Any) -> onnx.ModelProto:
    """Join an input of three columns and a weight."""
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "w"], ["y"], axis=0)],
        "g",
        [helper.make_tensor_value_info("x", code, ["N", 3])],
        [helper.make_tensor_value_info("y", code, ["M", 3])],
        [numpy_helper.from_array(array, "w")],
    )
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def operators(graph: Any) -> list[str]:
    """Return the operators of a graph in the order of its nodes."""
    return [node.op_type for node in graph.node]


def every_attribute() -> onnx.ModelProto:
    """Build a model with attributes of every type, functions, metadata and unknown fields."""
    values = numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "v")
    indices = numpy_helper.from_array(np.array([1, 3], np.int64), "i")
    sparse = helper.make_sparse_tensor(values, indices, [5])
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "n"])
    body = helper.make_graph(
        [helper.make_node("Relu", ["outside"], ["r"])],
        "body",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
    )
    node = helper.make_node(
        "Everything",
        ["x", "", "outside"],
        ["y", "", "unused"],
        domain="com.example",
        overload="first",
        doc_string="about the node",
        whole=3,
        real=0.1,
        text="sömething",
        tensor=numpy_helper.from_array(np.arange(4, dtype=np.int32), "t"),
        large=numpy_helper.from_array(np.arange(300, dtype=np.float32), "large"),
        sparse=sparse,
        type=kind,
        graph=body,
        reals=[0.1, float("inf"), 1e-30],
        wholes=[1, -2, 1 << 60],
        texts=["a", "b\u00fc"],
        tensors=[values, indices],
        graphs=[body, body],
        sparses=[sparse],
        types=[kind, kind],
    )
    raw = node.attribute.add(name="raw", type=onnx.AttributeProto.STRING)
    raw.s = b"\xff\xfe not UTF-8"
    node.metadata_props.add(key="note", value="kept")
    node.metadata_props.add(key="__mark__", value="shown")
    graph = helper.make_graph(
        [
            helper.make_node("Exp", ["x"], ["outside"], name="same"),
            node,
            helper.make_node("Constant", [], ["text"], value_strings=["a", "b"]),
            helper.make_node("Constant", [], ["seven"], value_int=7),
            helper.make_node("Work", ["text", "seven", "q", "s"], ["z"], name="same"),
        ],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, None),
        ],
        [helper.make_tensor("q", TensorProto.INT4, [3], [1, -2, 3])],
        "about the graph",
        [helper.make_tensor_value_info("outside", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_sparse_tensor(numpy_helper.from_array(np.ones(2, "f4"), "s"), indices, [5])],
    )
    function = helper.make_function(
        "com.example",
        "Work",
        ["a"],
        ["b"],
        [helper.make_node("Relu", ["a"], ["b"])],
        [helper.make_opsetid("", 20)],
        ["alpha"],
    )
    model = helper.make_model(
        graph,
        functions=[function],
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)],
        ir_version=10,
        producer_name="test",
        doc_string="about the model",
    )
    model.metadata_props.add(key="key", value="value")
    model.training_info.add().algorithm.name = "learn"
    annotation = model.graph.quantization_annotation.add(tensor_name="outside")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="q")
    # Field 999 of three messages, which no version of ONNX has.
    unknown = b"\xba\x3e\x05later"
    data = model.SerializeToString() + unknown
    model = onnx.ModelProto.FromString(data)
    model.graph.node[1].MergeFromString(unknown)
    model.graph.MergeFromString(unknown)
    return model
