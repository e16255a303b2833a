"""cancelTransposes on the models of MXNet and NNVM."""

from __future__ import annotations

from passlib._core import EditableNode
from passlib.library.python import Graph
from passlib.passes.standard.families.nodes import (
    can_go,
    integers,
    is_controlled,
    operator,
    replace,
)

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
