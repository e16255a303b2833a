"""ONNX models after passes: ONNX's checker accepts them, and they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnx_models
import passlib
from onnx_models import FEEDS, HEAD, TEXTS, X, operators, saved

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


EDITS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "renamed": [("renameOperators", {"prefix": "new_"})],
    "rebuilt": [("rebuildOperators", {})],
    "interposed": [("interpose", {})],
    "without identities": [("dropIdentities", {})],
    "reversed": [("reverseNodes", {})],
    "all of them": [
        ("interpose", {}),
        ("rebuildOperators", {}),
        ("dropIdentities", {}),
        ("reverseNodes", {}),
        ("renameOperators", {"prefix": "new_"}),
    ],
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.usefixtures("handover")
def test_edited_models_compute_the_same(name: str, edit: str, tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(TEXTS[name], tmp_path / "a.onnx"))
    edited = model
    for pass_name, options in EDITS[edit]:
        edited = edited.optimize_for(pass_name, **options)
    written = saved(edited, tmp_path / "b.onnx")
    original = onnx.load(tmp_path / "a.onnx")
    assert [v.name for v in written.graph.output] == [v.name for v in original.graph.output]
    assert [v.name for v in written.graph.input] == [v.name for v in original.graph.input]
    for feeds in FEEDS[name]:
        expected = model.run(feeds)
        for again in (edited, passlib.load(tmp_path / "b.onnx")):
            outputs = again.run(feeds)
            assert list(outputs) == list(expected)
            for key, array in expected.items():
                np.testing.assert_array_equal(outputs[key].asnumpy(), array.asnumpy())


@pytest.mark.parametrize("name", TEXTS)
def test_nodes_are_written_in_the_order_of_the_file(name: str, tmp_path: Path) -> None:
    # Libraries built with MXNet's own lib_api return nodes in an order of their own.
    source = onnx_models.save(TEXTS[name], tmp_path / "a.onnx")
    passlib.load(source).optimize_for("reverseNodes").save(tmp_path / "b.onnx")
    assert onnx.load(tmp_path / "b.onnx") == onnx.load(source)


def test_new_nodes_follow_what_they_need(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("interpose").optimize_for("reverseNodes")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert operators(graph)[:4] == ["Relu", "Identity", "Add", "Identity"]


def test_outputs_keep_their_names_after_new_nodes(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="Neg")
    assert edited.outputs == ["y", "z"]
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert list(graph.node[-1].output) == ["y"]
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, -model.run({"x": X})["y"].asnumpy())


def test_outputs_that_become_one_value_are_copied(tmp_path: Path) -> None:
    text = onnx_models.CHAIN.replace("z = Mul(a, d)", "e = Identity(d)\n z = Identity(e)")
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("dropIdentities")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert [v.name for v in graph.output] == ["y", "z"]
    assert operators(graph) == ["Relu", "Add", "Clip", "Reshape", "Identity"]
    outputs = edited.run({"x": X})
    np.testing.assert_array_equal(outputs["y"].asnumpy(), outputs["z"].asnumpy())


def test_an_input_that_becomes_an_output_is_copied(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 4] x) => (float[2, 4] y) { y = Identity(x) }
    """
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("dropIdentities")
    assert len(edited.symbol.nodes()) == 1
    assert operators(saved(edited, tmp_path / "b.onnx").graph) == ["Identity"]
    np.testing.assert_array_equal(edited.run({"x": X})["y"].asnumpy(), X)


def test_types_of_removed_values_are_removed(tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source)), source)
    before = {value.name for value in onnx.load(source).graph.value_info}
    assert before == {"a", "b", "c", "d"}
    edited = passlib.load(source).optimize_for("removeOperator", op="Clip")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert {value.name for value in graph.value_info} == {"a", "b", "d"}
    edited = passlib.load(source).optimize_for(
        "setAttribute", node="Reshape_3", key="allowzero", value="1"
    )
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert {value.name for value in graph.value_info} == {"a", "b", "c"}


def test_a_removed_output_leaves_the_others(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("removeNamed", node="Identity_4")
    assert edited.outputs == ["z"]
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert [value.name for value in graph.output] == ["z"]


def test_outputs_in_another_order_keep_their_places(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    before, after = model.run({"x": X}), model.optimize_for("reverseOutputs").run({"x": X})
    assert list(after) == ["y", "z"]
    np.testing.assert_array_equal(after["y"].asnumpy(), before["z"].asnumpy())
    np.testing.assert_array_equal(after["z"].asnumpy(), before["y"].asnumpy())


def test_new_operators_have_unique_names(tmp_path: Path) -> None:
    # ONNX Runtime refuses two nodes of one name.
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="Neg").optimize_for("appendOperator", op="Neg")
    names = [node.name for node in saved(edited, tmp_path / "b.onnx").graph.node]
    assert names[-2:] == ["appended", "appended_1"]
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, model.run({"x": X})["y"].asnumpy())


def test_an_output_listed_twice_becomes_two(tmp_path: Path) -> None:
    text = HEAD + "(float[2, 4] x) => (float[2, 4] y, float[2, 4] y) { y = Exp(x) }"
    source = tmp_path / "a.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    edited = passlib.load(source).optimize_for("appendOperator", op="Neg")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert [value.name for value in graph.output] == ["y", "Exp_0"]


def test_inputs_stand_as_in_the_file(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.LOOP, tmp_path / "a.onnx"))
    edited = model.optimize_for("reverseNodes")
    assert edited.inputs == model.inputs == ["x", "n", "step"]


def test_symbolic_sizes_stay(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    graph = saved(model.optimize_for("interpose"), tmp_path / "b.onnx").graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
