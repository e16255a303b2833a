"""Models without files, and passes as steps of other tools."""

from __future__ import annotations

import numpy as np
import pytest

import passlib as pl
from passlib import sym
from passlib.errors import UnsupportedError

onnx = pytest.importorskip("onnx")


def example():
    """Return an ONNX model with a node that is the same as another and one that nobody reads."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], "first"),
        helper.make_node("Exp", ["x"], ["b"], "again"),
        helper.make_node("Neg", ["x"], ["unread"], "dead"),
        helper.make_node("Mul", ["a", "b"], ["c"], "product"),
        helper.make_node("Add", ["c", "w"], ["y"], "sum"),
    ]
    values = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in "xy"]
    weight = onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
EXPECTED = np.exp(X) ** 2 + np.arange(3, dtype=np.float32)


def computed(proto) -> np.ndarray:
    return pl.load(proto).run({"x": X})["y"]


class TestMessages:
    def test_onnx(self) -> None:
        proto = example()
        model = pl.load(proto)
        assert model.to_onnx_proto() == proto
        smaller = model.simplify().to_onnx_proto()
        onnx.checker.check_model(smaller, full_check=True)
        assert [node.op_type for node in smaller.graph.node] == ["Exp", "Mul", "Add"]
        np.testing.assert_allclose(computed(smaller), EXPECTED, rtol=1e-6)
        newer = model.to_onnx_proto(opset=20)
        assert newer.opset_import[0].version == 20
        with pytest.raises(UnsupportedError, match="has shapes and types of its own"):
            model.to_onnx_proto(shapes={"x": (2, 3)})

    def test_mxnet(self, tmp_path) -> None:
        net = sym.broadcast_add(sym.exp(sym.var("x")), sym.var("w"), name="y")
        model = pl.Model(net, {"w": np.ones((1, 3), np.float32)})
        proto = model.to_onnx_proto(shapes={"x": X.shape}, opset=17)
        assert proto.opset_import[0].version == 17
        model.to_onnx(tmp_path / "m.onnx", shapes={"x": X.shape}, opset=17)
        assert proto == onnx.load(tmp_path / "m.onnx")
        (result,) = pl.load(proto).run({"x": X}).values()
        np.testing.assert_allclose(result, np.exp(X) + 1, rtol=1e-6)
        with pytest.raises(TypeError, match="'int7', which is not one"):
            model.to_onnx_proto(types={"x": "int7"})


class TestOnnxIr:
    def test_in_a_sequence(self) -> None:
        ir = pytest.importorskip("onnx_ir")
        common = pytest.importorskip("onnx_ir.passes.common")
        model = ir.from_proto(example())
        steps = ir.passes.Sequential(
            pl.workbench.onnx_ir_pass("mergeEqualNodes"), common.RemoveUnusedNodesPass()
        )
        result = steps(model)
        assert result.modified
        assert [node.op_type for node in result.model.graph] == ["Exp", "Mul", "Add"]
        assert len(model.graph) == 5
        np.testing.assert_allclose(computed(ir.to_proto(result.model)), EXPECTED, rtol=1e-6)
        again = pl.workbench.onnx_ir_pass("mergeEqualNodes, removeDeadNodes")(result.model)
        assert not again.modified

    def test_errors(self) -> None:
        ir = pytest.importorskip("onnx_ir")
        step = pl.workbench.onnx_ir_pass("noSuchPass")
        with pytest.raises(pl.PasslibError, match="there is no pass"):
            step(ir.from_proto(example()))


def test_before_and_after_onnxslim() -> None:
    """Onnxslim takes and returns messages, too: passes run before and after its own."""
    onnxslim = pytest.importorskip("onnxslim")
    merged = pl.load(example()).optimize_for("mergeEqualNodes").to_onnx_proto()
    slimmed = onnxslim.slim(merged)
    last = pl.load(slimmed).optimize_for("removeDeadNodes").to_onnx_proto()
    assert sorted(node.op_type for node in last.graph.node) == ["Add", "Exp", "Mul"]
    np.testing.assert_allclose(computed(last), EXPECTED, rtol=1e-6)
