"""Graphs that a pass may leave behind, written as networks of DLPrimitives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlprim_files import (
    by_name,
    dialect,
    load,
    network,
    operator,
    random_inputs,
    relu,
    run_all,
    same_results,
    saved,
    with_weights,
)
from passlib import _core
from passlib.dialects.protocol import ModelData
from passlib.errors import GraphError, UnsupportedError
from passlib.model import Model
from passlib.model.graph import graph_of

pytest.importorskip("onnxruntime")


Node = _core.NodeTuple
Entry = tuple[int, int, int]


def edited(model: Model, edit: Callable[[list[Node], list[Entry]], Any]) -> Model:
    """Change the list of nodes as a pass might."""
    nodes, heads = model.symbol.graph.nodes(), model.symbol.graph.heads()
    edit(nodes, heads)
    graph = _core.Graph.build(nodes, heads)
    graph.check()
    symbol = graph_of(graph, model.symbol.attributes, "dlprim")
    return Model.of_parts(symbol, model.args, model.aux, model._template)


def position(nodes: list[Node], name: str) -> int:
    return next(i for i, node in enumerate(nodes) if node.name == name)


def test_a_weight_in_a_second_mention_stays(tmp_path: Path) -> None:
    """Outputs of one name are merged, and keep the weight that any of them has."""
    weighted = {"name": "a", "loss_weight": 2}
    layers = [operator("a", "Abs"), operator("b", "Abs")]
    model = load(tmp_path, network(*layers, outputs=["a", weighted, "b"]))
    changed = edited(model, lambda nodes, heads: heads.pop())
    _, description = saved(changed, tmp_path)
    assert description["outputs"] == [weighted]


@pytest.mark.parametrize("op", ["InnerProduct", "Concat"])
def test_parameters_named_as_automatic_ones(tmp_path: Path, op: str) -> None:
    """In a file the name would mean an automatic one, for weights and constants alike."""
    options = {"outputs": 3} if op == "InnerProduct" else {}
    layers = [operator("f", op, **options), operator("p", "Parameter", [], shape=[2, 3])]
    model = with_weights(load(tmp_path, network(*layers, shape=(2, 3), outputs=["f"])))
    weight = np.ones((3, 3) if op == "InnerProduct" else (2, 3), np.float32)

    def edit(nodes: list[Node], heads: list[Entry]) -> None:
        nodes.insert(0, Node("null", "auto", {}, [], 1, [], []))
        for node in nodes:
            node.inputs[:] = [(index + 1, 0, 0) for index, _, _ in node.inputs]
        heads[:] = [(index + 1, 0, 0) for index, _, _ in heads]
        inputs = nodes[position(nodes, "f")].inputs
        inputs[1:2] = [(0, 0, 0)]

    changed = edited(model, edit)
    changed = Model(
        changed.symbol, {**model.args, "auto": weight}, {}, "dlprim", template=model._template
    )
    with pytest.raises(UnsupportedError, match=r"parameter 'auto' has a name that means"):
        changed.save(tmp_path / "saved")


def test_late_reader_of_an_old_version(tmp_path: Path) -> None:
    """A pass reads a tensor that was overwritten in place, so the new content needs another."""
    layers = [operator("t", "Abs"), relu("r", "t"), operator("h", "Hardtanh", "t", "h")]
    model = load(tmp_path, network(*layers, outputs=["h", "t"]))

    def edit(nodes: list[Node], heads: list[Entry]) -> None:
        first, last = position(nodes, "t"), position(nodes, "h")
        nodes.append(Node("Elementwise", "late", {}, [(first, 0, 0), (last, 0, 0)], 1, [], []))
        heads[0] = (len(nodes) - 1, 0, 0)

    changed = edited(model, edit)
    after, description = saved(changed, tmp_path)
    same_results(changed, after)
    assert description["outputs"] == ["h", "t"]
    layers = by_name(description)
    assert layers["r"]["outputs"] == ["t"]
    assert layers["t"]["outputs"] == layers["r"]["inputs"]
    assert layers["t"]["outputs"] != ["t"]
    assert layers["late"]["inputs"][0] == layers["t"]["outputs"][0]


def test_read_of_memory_that_was_shared(tmp_path: Path) -> None:
    """A pass reads the input of a Flatten after its output was written to."""
    layers = [operator("x", "Abs"), operator("f", "Flatten", "x"), relu("r", "f")]
    model = load(tmp_path, network(*layers, outputs=["f"]))

    def edit(nodes: list[Node], heads: list[Entry]) -> None:
        nodes.append(Node("Hardtanh", "late", {}, [(position(nodes, "x"), 0, 0)], 1, [], []))
        heads.append((len(nodes) - 1, 0, 0))

    changed = edited(model, edit)
    after, description = saved(changed, tmp_path)
    inputs = random_inputs(changed)
    for left, right in zip(run_all(changed, inputs)[0], run_all(after, inputs)[0], strict=True):
        np.testing.assert_array_equal(left, right)
    assert description["outputs"] == ["f_1", "late"] or description["outputs"] == ["f", "late"]
    layers = by_name(description)
    assert layers["late"]["inputs"] == ["x"]
    assert layers["r"]["outputs"] != layers["r"]["inputs"]


def test_copied_node(tmp_path: Path) -> None:
    """Of two nodes with the same place, the first is the original."""
    model = load(tmp_path, network(operator("a", "Abs"), outputs=["a"]))

    def edit(nodes: list[Node], heads: list[Entry]) -> None:
        node = nodes[position(nodes, "a")]
        nodes.append(node._replace(attrs=dict(node.attrs)))
        heads.append((len(nodes) - 1, 0, 0))

    _, description = saved(edited(model, edit), tmp_path)
    first, second = description["operators"]
    assert first == operator("a", "Abs")
    assert (second["name"], second["outputs"]) == ("a_1", ["a_1"])
    assert description["outputs"] == ["a", "a_1"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda node: node.inputs.pop(), "needs 2 inputs that are parameters, has 1"),
        (lambda node: node.inputs.reverse(), "'data' is not a parameter, but used as one"),
        (lambda node: node.inputs.clear(), "takes 1 input, has 0"),
    ],
)
def test_unsound_inputs(tmp_path: Path, edit: Callable[[Any], Any], message: str) -> None:
    model = load(tmp_path, network(operator("fc", "InnerProduct", outputs=2), shape=(2, 3)))
    model = with_weights(model)
    changed = edited(model, lambda nodes, heads: edit(nodes[position(nodes, "fc")]))
    data = ModelData(changed.symbol.graph, {}, model.args, {}, model._template)
    with pytest.raises(GraphError, match=message):
        dialect.save(tmp_path / "saved", data)
