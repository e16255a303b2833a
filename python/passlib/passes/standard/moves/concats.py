"""mergeConcats: merges nested Concats."""

from __future__ import annotations

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.book import apply_groups
from passlib.passes.standard.facts.nodes import Model, integer, operator
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.families import moves


@graph_pass(
    name="mergeConcats",
    dialects=["onnx", "mxnet", "nnvm"],
    exact=True,
    triggers=["Concat", "concat", "concatenate"],
    joins=Joins(["clean", "simplify"], after="mergeSlices"),
)
def merge_concats(graph: Graph) -> None:
    """Merge nested Concats on the same axis, and Splits of Concats into the same parts.

    An inner Concat with other users stays.
    """
    if graph.dialect != "onnx":
        moves.merge_concats(graph)
        return
    _merge_concats(graph)
    apply_groups(graph, "mergeConcats")


def _merge_concats(graph: Graph) -> None:
    model = Model(graph)
    found = graph.sorted("Concat")
    if not any(_inner(value) for node in found for value in node.inputs):
        return
    shapes = Shapes(model)
    for node in found:
        inside = [
            value
            for value in node.inputs
            if _inner(value) and _axis(value.node, shapes) == _axis(node, shapes) is not None
        ]
        if not inside or node.control_deps:
            continue
        values: list[EditableValue] = []
        for value in node.inputs:
            values += value.node.inputs if value in inside else [value]
        graph.set_inputs(node, values)
        model.remove_unused([value.node for value in inside])


def _inner(value: EditableValue) -> bool:
    """Whether a value is a Concat with one user."""
    node = value.node
    if operator(node) != "Concat" or node.control_deps or value.is_output:
        return False
    return value.only_use is not None


def _axis(node: EditableNode, shapes: Shapes) -> int | None:
    rank = shapes.rank(node.outputs[0])
    return None if not rank else integer(node, "axis", 1) % rank
