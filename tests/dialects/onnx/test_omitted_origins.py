"""``__origin__`` in ONNX files: not written unless asked for, and kept where the file has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import passlib

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    load_plugin("onnx_edits")


def marked() -> onnx.ModelProto:
    """Three operators: one without a mark, one with it as metadata, one as an attribute."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "plain"),
        helper.make_node("Relu", ["a"], ["b"], "metadata"),
        helper.make_node("Own", ["b"], ["y"], "attribute", domain="test", __origin__="file"),
    ]
    nodes[1].metadata_props.add(key="__origin__", value="file")
    nodes[1].doc_string = "behind"  # so that the message written anew would be another one
    nodes[1].metadata_props.add(key="other", value="text")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.onnx"
    path.write_bytes(marked().SerializeToString())
    return path


def marks(path: Path, name: str) -> dict[str, str]:
    node = next(node for node in onnx.load(path).graph.node if node.name == name)
    found = {entry.key: entry.value for entry in node.metadata_props}
    found.update({a.name: a.s.decode() for a in node.attribute})
    return found


def with_origin(model: passlib.Model, node: str) -> passlib.Model:
    return model.optimize_for("setAttribute", node=node, key="__origin__", value="pass")


def test_an_unchanged_file_keeps_its_marks(source: Path, tmp_path: Path) -> None:
    passlib.load(source).save(tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", ["plain", "metadata", "attribute"])
def test_a_mark_alone_is_no_change(name: str, source: Path, tmp_path: Path) -> None:
    made = with_origin(passlib.load(source), name)
    made.save(tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == source.read_bytes()
    made.save(tmp_path / "c.onnx", origins=True)
    assert marks(tmp_path / "c.onnx", name)["__origin__"] == "pass"


@pytest.mark.parametrize("name", ["plain", "metadata", "attribute"])
def test_changed_nodes_have_the_marks_of_the_file(name: str, source: Path, tmp_path: Path) -> None:
    made = with_origin(passlib.load(source), name)
    made = made.optimize_for("setAttribute", node=name, key="__cost__", value="12")
    made.save(tmp_path / "b.onnx")
    wanted = {**marks(source, name), "__cost__": "12"}
    assert marks(tmp_path / "b.onnx", name) == wanted
    made.save(tmp_path / "c.onnx", origins=True)
    assert marks(tmp_path / "c.onnx", name) == {**wanted, "__origin__": "pass"}
