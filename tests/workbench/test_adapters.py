"""Models without files, and passes as steps of other tools."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

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


OLIVE = """
import json
from pathlib import Path

import olive.workflows

package = json.loads((Path(olive.__file__).parent / "olive_config.json").read_text())
package["passes"]["Passlib"] = {"module_path": "passlib.workbench.adapters.Passlib"}
workflow = {
    "input_model": {"type": "ONNXModel", "model_path": "m.onnx"},
    "passes": {
        "merge": {"type": "Passlib", "steps": "mergeEqualNodes"},
        "rest": {"type": "Passlib"},
    },
    "output_dir": "out",
    "cache_dir": "cache",
}
olive.workflows.run(workflow, package_config=package)
"""


def test_in_a_workflow_of_olive(tmp_path: Path) -> None:
    """Olive needs torch and transformers, which the development environment does not have."""
    if importlib.util.find_spec("olive") is None:
        pytest.skip("the package olive-ai is not installed")
    onnx.save(example(), tmp_path / "m.onnx")
    # Where the tests' own module named transformers is not in the path.
    subprocess.run([sys.executable, "-c", OLIVE], cwd=tmp_path, check=True, timeout=300)
    made = onnx.load(tmp_path / "out" / "model.onnx")
    assert sorted(node.op_type for node in made.graph.node) == ["Add", "Exp", "Mul"]
    np.testing.assert_allclose(computed(made), EXPECTED, rtol=1e-6)


def test_before_and_after_onnxslim() -> None:
    """Onnxslim takes and returns messages, too: passes run before and after its own."""
    onnxslim = pytest.importorskip("onnxslim")
    merged = pl.load(example()).optimize_for("mergeEqualNodes").to_onnx_proto()
    slimmed = onnxslim.slim(merged)
    last = pl.load(slimmed).optimize_for("removeDeadNodes").to_onnx_proto()
    assert sorted(node.op_type for node in last.graph.node) == ["Add", "Exp", "Mul"]
    np.testing.assert_allclose(computed(last), EXPECTED, rtol=1e-6)
