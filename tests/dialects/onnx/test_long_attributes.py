"""Long lists in attributes: passes see a summary, and the file keeps them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import passlib
from peak_memory import PEAK
from sanitized import unless_sanitized

MEASURED = (
    PEAK
    + """
import sys
import passlib

for source in sys.argv[1:]:
    model = passlib.load(source).simplify()
    model.save(source + ".made.onnx")
    print(peak())
"""
)


def trees(count: int) -> onnx.ModelProto:
    """A classifier of trees between casts, with lists of so many numbers."""
    random = np.random.default_rng(count)
    wholes = random.integers(0, 1000, (8, count)).tolist()
    reals = random.random((3, count), np.float32).tolist()
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
             "nodes_falsenodeids", "class_treeids", "class_nodeids", "class_ids")  # fmt: skip
    attributes = dict(zip(names, wholes, strict=True))
    more = dict(zip(("nodes_values", "nodes_hitrates", "class_weights"), reals, strict=True))
    classes = [*range(3)]
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT),
        helper.make_node(
            "TreeEnsembleClassifier", ["c"], ["label", "p"], name="trees", domain="ai.onnx.ml",
            nodes_modes=["LEAF"] * count, classlabels_int64s=classes, **attributes, **more,
        ),
        helper.make_node("Cast", ["label"], ["y"], to=TensorProto.INT64),
    ]  # fmt: skip
    ends = (("x", TensorProto.FLOAT, ["N", 4]), ("y", TensorProto.INT64, ["N"]))
    graph = helper.make_graph(
        nodes, "g", *([helper.make_tensor_value_info(*each)] for each in ends)
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def ensemble(path: Path) -> onnx.NodeProto:
    return next(node for node in onnx.load(path).graph.node if node.domain == "ai.onnx.ml")


def test_passes_see_summaries_and_the_file_keeps_the_lists(tmp_path: Path) -> None:
    message = trees(3000)
    model = passlib.load(message)
    attrs = next(node.attrs for node in model.symbol.nodes() if node.name == "trees")
    shown = json.loads(attrs["nodes_values"])
    assert (shown["long"], shown["count"]) == ("floats", 3000)
    assert json.loads(attrs["nodes_modes"])["long"] == "strings"
    assert attrs["classlabels_int64s"] == "[0, 1, 2]"
    model.simplify().save(tmp_path / "a.onnx")
    made = ensemble(tmp_path / "a.onnx")
    assert list(made.input) == ["x"]
    assert list(made.attribute) == list(message.graph.node[1].attribute)
    passlib.load(tmp_path / "a.onnx").save(tmp_path / "b.onnx", opset=18)
    assert list(ensemble(tmp_path / "b.onnx").attribute) == list(made.attribute)


@pytest.mark.parametrize("text", ['{"long": "ints", "count": 3, "hash": "0"}', '{"long": "'])
def test_summaries_of_nothing_are_refused(text: str, tmp_path: Path) -> None:
    @passlib.graph_pass(name="summarise", replace=True)
    def summarise(graph: passlib.Graph) -> None:
        graph.find("trees").attrs["nodes_values"] = text  # type: ignore[union-attr]

    model = passlib.load(trees(3000)).optimize_for("summarise")
    with pytest.raises(passlib.UnsupportedError, match=r"nodes_values.*set it to the list itself"):
        model.save(tmp_path / "a.onnx")


def test_summaries_can_be_copied_and_replaced(tmp_path: Path) -> None:
    @passlib.graph_pass(name="swap", replace=True)
    def swap(graph: passlib.Graph) -> None:
        attrs = graph.find("trees").attrs  # type: ignore[union-attr]
        attrs["nodes_values"] = attrs["nodes_hitrates"]
        attrs["nodes_hitrates"] = "[1.5, 2.5]"

    message = trees(3000)
    passlib.load(message).optimize_for("swap").save(tmp_path / "a.onnx")
    made = {each.name: list(each.floats) for each in ensemble(tmp_path / "a.onnx").attribute}
    before = {each.name: list(each.floats) for each in message.graph.node[1].attribute}
    assert made["nodes_values"] == before["nodes_hitrates"]
    assert made["nodes_hitrates"] == [1.5, 2.5]


def summaries(message: onnx.ModelProto) -> dict[str, str]:
    nodes = passlib.load(message).symbol.nodes()
    return next(dict(node.attrs) for node in nodes if node.name == "trees")


def test_summaries_differ_where_lists_do() -> None:
    message = trees(3000)
    first = summaries(message)
    values = next(a for a in message.graph.node[1].attribute if a.name == "nodes_values")
    values.floats[2999] += 1
    del message.graph.node[2]
    message.graph.output[0].name = "label"
    second = summaries(message)
    assert {key for key in first if first[key] != second[key]} == {"nodes_values"}


@unless_sanitized("its own memory is beyond the limit")
def test_memory_stays_near_the_size_of_the_file(tmp_path: Path) -> None:
    """The first, small model takes what imports take, ONNX's among them."""
    small, large = tmp_path / "small.onnx", tmp_path / "large.onnx"
    onnx.save(trees(3000), small)
    onnx.save(trees(700_000), large)
    command = [sys.executable, "-c", MEASURED, str(small), str(large)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    before, after = map(int, printed.split())
    assert after - before < 1.5 * large.stat().st_size / 2**20
