"""mergeConcats on the models of MXNet and NNVM."""

from __future__ import annotations

from passlib._core import EditableNode, EditableValue
from passlib.graph.attributes import parse_int
from passlib.library.python import Graph
from passlib.passes.standard.families.nodes import attribute, is_controlled, operator

_AXES = {"Concat": "dim", "nnvm.concatenate": "axis"}


def merge_concats(graph: Graph) -> None:
    """Replace Concat of what another Concat returns on the same axis by one Concat."""
    if is_controlled(graph):
        return
    for node in graph.sorted():
        name = operator(graph, node)
        if name not in _AXES:
            continue
        merged = [value.node for value in node.inputs if _is_part(graph, value, node, name)]
        if not merged:
            continue
        values: list[EditableValue] = []
        for value in node.inputs:
            values += value.node.inputs if value.node in merged else [value]
        graph.set_inputs(node, values)
        if "num_args" in node.attrs:
            node.attrs["num_args"] = str(len(values))
        graph.remove(*merged)


def _is_part(graph: Graph, value: EditableValue, node: EditableNode, name: str) -> bool:
    """Whether a value is a Concat on the axis of a node, which alone uses it, once."""
    inner = value.node
    if operator(graph, inner) != name or value.is_output:
        return False
    axis = attribute(node, _AXES[name], 1, parse_int)
    same = axis is not None and axis == attribute(inner, _AXES[name], 1, parse_int)
    return same and value.only_use is not None
