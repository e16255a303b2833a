"""ONNX models with nested graphs after passes: names and captured values stay right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_models
import passlib
from onnx_models import FEEDS, HEAD, operators, saved
from passlib.errors import GraphError

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


def test_captured_names_follow_a_replaced_producer(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx"))
    graph = saved(model.optimize_for("dropIdentities"), tmp_path / "b.onnx").graph
    assert operators(graph) == ["Add", "If"]
    inner = graph.node[1].attribute[0].g.node[0].attribute[1].g.node[0]
    assert (inner.op_type, list(inner.input)) == ("Mul", ["b", "x"])


def test_names_of_copies_of_captured_values(tmp_path: Path) -> None:
    branches = (
        f"{branch} = g () => "
        f"({', '.join(f'float[2] {letter}{n}' for n in range(6))}) "
        f"{{ {' '.join(f'{letter}{n} = Identity(x)' for n in range(6))} }}"
        for branch, letter in (("then_branch", "t"), ("else_branch", "e"))
    )
    outputs = [f"y{n}" for n in range(6)]
    text = (
        f"{HEAD}(float[2] x, bool c) => ({', '.join(f'float[2] {name}' for name in outputs)}) "
        f"{{ {', '.join(outputs)} = If(c) <{', '.join(branches)}> }}"
    )
    model = passlib.load(onnx.parser.parse_model(text))
    graph = saved(model.optimize_for("dropIdentities"), tmp_path / "b.onnx").graph
    for branch in graph.node[0].attribute:
        names = [value.name for value in branch.g.output]
        assert [node.output[0] for node in branch.g.node] == names
        assert [node.name for node in branch.g.node] == [f"{name}_copy" for name in names]


def test_a_node_and_its_copy_are_two(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx"))
    edited = model.optimize_for("copyNode", node="If_2")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert operators(graph) == ["Identity", "Add", "If", "If"]
    assert [value.name for value in graph.output] == ["y", "If_2_again"]
    for feeds in FEEDS["nested"]:
        y, again = edited.run(feeds).values()
        np.testing.assert_array_equal(y.asnumpy(), again.asnumpy())


def test_an_input_taken_from_a_node_with_a_nested_graph(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx"))
    edited = model.optimize_for("removeNamed", node="w")
    with pytest.raises(GraphError, match=r"'If_2' \(If\) has 4 inputs.*are 1 and 4"):
        edited.save(tmp_path / "b.onnx")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx")
    before = source.read_bytes()
    edited = passlib.load(source).optimize_for("removeNamed", node="w")
    with pytest.raises(GraphError):
        edited.save(source)
    assert source.read_bytes() == before


SHADOWED = (
    HEAD
    + """(float[3] x, int64 n, float[3] step) => (float[3] last) {
    go = Constant <value = bool {1}> ()
    a = Identity(x)
    last = Loop(n, go, step) <
      body = body (int64 i, bool go, float[3] x) => (bool go, float[3] after) {
        after = Add(x, a)
      }>
}"""
)


BRANCHES = (
    HEAD
    + """(float[3] x, int64 n, float[3] step) => (float[3] y) {
    a = Identity(x)
    one = Constant <value = int64 {1}> ()
    c = Greater(n, one)
    y = If(c) <
      then_branch = then () => (t) { t = Identity(a) },
      else_branch = otherwise () => (e) { e = Sub(step, a) }>
}"""
)


@pytest.mark.parametrize("text", [SHADOWED, BRANCHES])
@pytest.mark.parametrize(
    "edits", [["dropIdentities"], ["interpose", "rebuildOperators", "dropIdentities"]]
)
def test_names_of_nested_graphs_do_not_hide_others(
    text: str, edits: list[str], tmp_path: Path
) -> None:
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model
    for edit in edits:
        edited = edited.optimize_for(edit)
    saved(edited, tmp_path / "b.onnx")
    for feeds in FEEDS["loop"]:
        expected = next(iter(model.run(feeds).values())).asnumpy()
        np.testing.assert_array_equal(next(iter(edited.run(feeds).values())).asnumpy(), expected)
