"""Operators, attributes and weights of graphs of MXNet, NNVM and DLPrimitives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.dialects import find
from passlib.graph.attributes import parse_optional_ints
from passlib.library.python import Graph

T = TypeVar("T")

_NNVM_OWN = frozenset(
    ("block_grad", "concatenate", "conv2d", "conv2d_transpose", "copy", "dense", "dropout",
     "elemwise_sum", "flatten", "identity", "transpose")
)  # fmt: skip
"""NNVM's own operators that standard passes know; other names in its files may be MXNet's."""


def operator(graph: Graph, node: EditableNode) -> str:
    """Return the operator of a node: in MXNet the registered name, of which others are aliases.

    NNVM's own operators have ``nnvm.`` in front.
    """
    if graph.dialect == "nnvm" and (node.op in _NNVM_OWN or node.op.startswith("__")):
        return f"nnvm.{node.op}"
    if graph.dialect == "nnvm" and node.op.islower() and not node.op.startswith("_"):
        return node.op  # in both registries, with different attributes
    return find(graph.dialect).registered_name(node.op)


def attribute(node: EditableNode, key: str, preset: T, parse: Callable[[str], T]) -> T | None:
    """Return an attribute; None if its text cannot be read, which running the model will say."""
    text = node.attrs.get(key)
    if text is None:
        return preset
    try:
        return parse(text)
    except ValueError:
        return None


def integers(node: EditableNode, key: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of whole numbers, () by default; None for other texts."""
    nothing: tuple[int | None, ...] = ()
    found = attribute(node, key, nothing, parse_optional_ints)
    if found is None or None in found:
        return None
    return tuple(item for item in found if item is not None)


def constant(graph: Graph, value: EditableValue) -> np.ndarray[Any, Any] | None:
    """Return the elements of a weight; None for other values."""
    return graph.args.get(value.node.name) if value.node.is_variable else None


def is_controlled(graph: Graph) -> bool:
    """Whether nodes wait for others whose results they do not use, which must stay then."""
    return any(node.control_deps for node in graph.nodes)


def can_go(node: EditableNode) -> bool:
    """Whether other values can take the place of a node's first output, the only one in use.

    Outputs of the model are named after their nodes, which stay.
    """
    if node.outputs[0].is_output:
        return False
    return not any(value.uses or value.is_output for value in node.outputs[1:])


def replace(graph: Graph, node: EditableNode, by: EditableValue) -> None:
    """Replace the first output of a node, and remove the node and the weights that it used."""
    graph.replace(node.outputs[0], by)
    sources = [value.node for value in node.inputs]
    graph.remove(node)
    remove_unused(graph, sources)


def remove_unused(graph: Graph, nodes: Iterable[EditableNode]) -> None:
    """Remove those of the nodes that are weights and that nothing uses any more."""
    for node in set(nodes):
        if node.is_variable and node.name in graph.args and not node.is_used:
            del graph.args[node.name]
            graph.remove(node)
