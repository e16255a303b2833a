"""New nodes of a library's passes know which nodes of the model they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import passlib

LoadPlugin = Callable[[str], passlib.library.Library]

# The operators, and what each new node stands for.
WAYS = {
    "only": (["Neg", "Abs_new", "Relu"], ["abs"]),
    "both": (["Abs_new", "Relu"], ["abs", "neg"]),
    "behind": (["Neg", "Abs", "Abs_new", "Relu"], None),
}


def chain() -> passlib.Model:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], name="neg"),
        helper.make_node("Abs", ["n"], ["a"], name="abs"),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:])
    return passlib.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )


def marks(model: passlib.Model, path: Path, origins: bool) -> int:
    """Return how many nodes have an origin in a file."""
    model.save(path, origins=origins)
    return path.read_bytes().count(b"__origin__")


@pytest.mark.parametrize("handover", ["flat", "json"])
@pytest.mark.parametrize("way", WAYS)
def test_a_new_node_knows_what_it_replaced(
    load_plugin: LoadPlugin,
    way: str,
    handover: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PASSLIB_HANDOVER", handover)
    load_plugin("edits")
    model = chain().optimize_for("renewAbs", way=way)
    operators, origin = WAYS[way]
    found = {node.name: node for node in model.symbol.nodes() if node.op != "null"}
    assert [name.capitalize() for name in found] == operators
    noted = {name: node.attrs.get("__origin__") for name, node in found.items()}
    origins = {name: json.loads(mark) for name, mark in noted.items() if mark}
    assert origins == ({"abs_new": origin} if origin else {})
    assert marks(model, tmp_path / "plain.onnx", origins=False) == 0
    assert marks(model, tmp_path / "origins.onnx", origins=True) == len(origins)


def test_later_passes_keep_the_origin(load_plugin: LoadPlugin) -> None:
    load_plugin("edits")
    model = chain().optimize_for("renewAbs", way="only").optimize_for("renewAbs", way="both")
    found = [node.attrs.get("__origin__") for node in model.symbol.nodes()]
    assert [json.loads(mark) for mark in found if mark] == [["abs", "neg"]]
