"""Parameters that a pass changes, adds or removes, in all versions of the ONNX format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_models
import passlib
from onnx_models import X, operators, saved
from passlib.errors import PassError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("ir_version", [3, 8])
def test_new_parameters_become_initializers(size: int, ir_version: int, tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    stored = onnx.load(source)
    if ir_version < 4:
        for tensor in stored.graph.initializer:
            stored.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    stored.ir_version = ir_version
    onnx.save(stored, source)
    model = passlib.load(source)
    edited = model.optimize_for("addConstant", size=size)
    assert edited.args["added_constant"].shape == (size,)
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert ("added_constant" in [v.name for v in graph.input]) == (ir_version < 4)
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, model.run({"x": X})["y"].asnumpy() + 1)


def before_imports(path: Path, ir_version: int) -> Path:
    """Write a model of the first versions of the format, where weights are inputs as well."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Add", ["a", "w"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [2, 4]), value("w", TensorProto.FLOAT, [2, 4])],
        [value("y", TensorProto.FLOAT, [2, 4])],
        [numpy_helper.from_array(X, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)])
    model.ir_version = ir_version
    if ir_version < 3:
        model.ClearField("opset_import")
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("ir_version", [1, 2, 3])
def test_the_first_versions_stay(ir_version: int, tmp_path: Path) -> None:
    source = before_imports(tmp_path / "a.onnx", ir_version)
    edited = passlib.load(source).optimize_for("appendOperator", op="Dropout", key="ratio", value=0)
    edited.optimize_for("rebuildOperators", parameters=True).save(tmp_path / "b.onnx")
    onnx.checker.check_model(tmp_path / "b.onnx")
    written = onnx.load(tmp_path / "b.onnx")
    assert len(written.opset_import) == (ir_version == 3)
    assert [value.name for value in written.graph.input] == ["x", "w"]
    assert written.graph.node[-1].attribute[0].type == onnx.AttributeProto.FLOAT


def test_the_first_versions_have_no_other_domains(tmp_path: Path) -> None:
    model = passlib.load(before_imports(tmp_path / "a.onnx", 2))
    edited = model.optimize_for("appendOperator", op="Own", domain="own")
    with pytest.raises(UnsupportedError, match=r"IR version 2.*'own'"):
        edited.save(tmp_path / "b.onnx")


def test_changed_parameters_are_written(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("fillParameter", name="w", value=7)
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert numpy_helper.to_array(graph.initializer[0]).tolist() == [7, 7, 7, 7]
    assert model.args["w"].asnumpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("value", ["value", "value_floats"])
def test_changed_constants_are_written(value: str, tmp_path: Path) -> None:
    literal = "float[4] {1.0, 2.0, 3.0, 4.0}" if value == "value" else "[1.0, 2.0, 3.0, 4.0]"
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 4] x) => (float[2, 4] y) {{
        k = Constant <{value} = {literal}> ()
        y = Add(x, k)
    }}
    """
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("fillParameter", name="k", value=7)
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert operators(graph) == ["Constant", "Add"]
    np.testing.assert_array_equal(edited.run({"x": X})["y"].asnumpy(), X + 7)


def test_removed_parameters_are_not_written(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("removeNamed", node="w")
    assert list(edited.args) == ["shape"]
    graph = saved(
        edited.optimize_for("removeOperator", op="Add", skip_infer=True), tmp_path / "b.onnx"
    ).graph
    assert [tensor.name for tensor in graph.initializer] == ["shape"]


def test_weights_without_values_cannot_be_filled(tmp_path: Path) -> None:
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    with pytest.raises(PassError, match="no values for q"):
        passlib.load(source).optimize_for("fillParameter", name="q", value=1)


@pytest.mark.parametrize("ir_version", [3, 8])
def test_types_that_are_stated_of_weights_stay(ir_version: int, tmp_path: Path) -> None:
    """Weights of the first versions are inputs as well: two places of the file have their names."""
    source = before_imports(tmp_path / "a.onnx", 3)
    stored = onnx.load(source)
    if ir_version > 3:
        stored.ir_version = ir_version
        del stored.graph.input[1]
    for name in ("w", "a"):
        stored.graph.value_info.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4])
        )
    onnx.save(stored, source)
    model = passlib.load(source)
    graph = saved(model.optimize_for("addConstant", size=1), tmp_path / "b.onnx").graph
    assert [value.name for value in graph.value_info][:2] == ["w", "a"]
    graph = saved(
        model.optimize_for("addConstant", size=1).with_weights({"w": X + 1}), source
    ).graph
    assert "a" in [value.name for value in graph.value_info]


def test_the_order_of_weights_does_not_matter(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    assert len(model.args) > 1
    turned = passlib.Model(model.symbol, dict(reversed(list(model.args.items()))))
    for each, name in ((model, "b.onnx"), (turned, "c.onnx")):
        each.optimize_for("addConstant", size=4).save(tmp_path / name)
    assert (tmp_path / "b.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()
