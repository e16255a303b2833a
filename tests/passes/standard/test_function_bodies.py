"""toHalf and quantizeWeights in the bodies of local functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

import passlib as pl
from passlib.model.edits import whole_content_of
from rewriting import results

K = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) / 3
X = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)

TWICE = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (float[4, 8] x) => (float[4, 8] y) { h = own.act(x) y = own.act(h) }
    <domain: "own", opset_import: ["" : 21]> act (a) => (b) {
    k = Constant<value_int = 0>() c = MatMul(a, k) b = Relu(c) }"""
NESTED = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (float[4, 8] x) => (float[4, 8] y) { y = own.outer(x) }
    <domain: "own", opset_import: ["" : 21]> act (a) => (b) {
    k = Constant<value_int = 0>() c = MatMul(a, k) b = Relu(c) }
    <domain: "own", opset_import: ["" : 21, "own" : 1]> outer (a) => (b) {
    c = own.act(a) d = Sigmoid(c) b = own.act(d) }"""


def with_weights(text: str) -> Any:
    """Return a model whose constants k are matrices."""
    made = parser.parse_model(text)
    for function in made.functions:
        for node in function.node:
            if node.output[0] == "k":
                del node.attribute[:]
                node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(K)))
    return made


def overloaded() -> Any:
    """Return a model that calls two functions of one name."""
    made = with_weights(TWICE)
    other = made.functions.add()
    other.CopyFrom(made.functions[0])
    other.overload = "wide"
    other.node[2].op_type = "Sigmoid"
    made.graph.node[1].overload = "wide"
    return made


MODELS = {"shared": with_weights(TWICE), "nested": with_weights(NESTED), "overloads": overloaded()}


def run(model: Any, x: np.ndarray) -> tuple[Any, np.ndarray]:
    content = model.SerializeToString() if hasattr(model, "graph") else whole_content_of(model)
    proto = onnx.ModelProto.FromString(content)
    onnx.checker.check_model(proto, full_check=True)
    return proto, results(content, {"x": x})[0]


def operators_within(proto: Any) -> set[str]:
    return {node.op_type for function in proto.functions for node in function.node}


@pytest.mark.parametrize("case", MODELS)
@pytest.mark.parametrize("bits", [8, 4])
def test_weights_of_functions_have_fewer_bits(case: str, bits: int) -> None:
    before = MODELS[case]
    made = pl.load(before).optimize_for("quantizeWeights", least=1, bits=bits, block=4)
    proto, found = run(made, X)
    assert len(proto.functions) == len(before.functions)
    assert "DequantizeLinear" in operators_within(proto)
    sizes = {
        attribute.t.data_type
        for function in proto.functions
        for node in function.node
        for attribute in node.attribute
        if list(attribute.t.dims) == [8, 8]
    }
    assert sizes == {onnx.TensorProto.INT8 if bits == 8 else onnx.TensorProto.INT4}
    wanted = run(before, X)[1]
    assert not np.array_equal(found, wanted)
    assert np.allclose(found, wanted, atol=0.05 if bits == 8 else 1)


@pytest.mark.parametrize("case", MODELS)
@pytest.mark.parametrize("keep_io", [True, False])
def test_functions_compute_in_half_precision(case: str, keep_io: bool) -> None:
    before = MODELS[case]
    made = pl.load(before).optimize_for("toHalf", keep_io=keep_io)
    given = X if keep_io else X.astype(np.float16)
    proto, found = run(made, given)
    assert len(proto.functions) == len(before.functions)
    assert "Cast" in operators_within(proto)
    assert found.dtype == given.dtype
    wanted = run(before, X)[1]
    assert np.allclose(found.astype(np.float32), wanted, rtol=1e-2, atol=1e-2)
