"""mergeConcats and cancelTransposes on MXNet and NNVM models."""

from __future__ import annotations

from passlib._core import EditableNode, EditableValue
from passlib.graph.attributes import parse_int
from passlib.library.python import Graph
from passlib.passes.standard.families.nodes import (
    attribute,
    can_go,
    integers,
    is_controlled,
    operator,
    replace,
)

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


_TRANSPOSES = ("transpose", "nnvm.transpose")


def cancel_transposes(graph: Graph) -> None:
    """Replace transpose after transpose by one, or by none."""
    if is_controlled(graph):
        return
    for node in graph.sorted():
        if operator(graph, node) not in _TRANSPOSES:
            continue
        before = node.inputs[0].node
        if operator(graph, before) != operator(graph, node):
            continue
        first, second = _order(before), _order(node)
        if first is None or second is None or len(first) != len(second):
            continue
        order = [first[axis] for axis in second]
        if order == sorted(order):
            if can_go(node):
                replace(graph, node, before.inputs[0])
        else:
            node.attrs["axes"] = f"({', '.join(map(str, order))})"
            graph.connect(before.inputs[0], node, 0)
        if not before.is_used:
            graph.remove(before)


def _order(node: EditableNode) -> list[int] | None:
    """Return the order of axes, None for the reverse order, and for axes that MXNet refuses."""
    order = list(integers(node, "axes") or ())
    return order if order and sorted(order) == list(range(len(order))) else None
