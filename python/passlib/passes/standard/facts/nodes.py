"""Operators, attributes and constants of ONNX graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passlib._core import EditableGraph, EditableNode, EditableValue
from passlib.dialects.onnx.attributes import ABSENT, ID, OPAQUE, OUTER
from passlib.graph.names import NameSource
from passlib.library.python import Graph

_DEFAULT = "__default__"


def operator(node: EditableNode) -> str:
    """Return the operator of a node, with its domain unless it is ONNX's own."""
    return node.kind


def is_constant(graph: Graph, node: EditableNode) -> bool:
    """Whether a node is a variable with a known value that callers cannot set."""
    if not node.is_variable or _DEFAULT in node.attrs or OUTER in node.attrs:
        return False
    if node.name == ABSENT or node.name in graph.args or OPAQUE in node.attrs:
        return True
    return not node.attrs.get(ID, "input.").startswith("input.")


def is_copy(node: EditableNode) -> bool:
    """Whether a node gives a variable the name of an output, and has no other use."""
    source = node.inputs[0].node if operator(node) == "Identity" and node.inputs else None
    return source is not None and source.is_variable and not node.outputs[0].uses


def graphs_within(node: EditableNode) -> Iterator[EditableGraph]:
    """Iterate over the nested graphs of a node, at all levels."""
    pending = list(node.subgraphs)
    while pending:
        graph = pending.pop()
        yield graph
        for inner in graph.nodes:
            pending.extend(inner.subgraphs)


def finite_as(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """Return an array cast to a dtype; None if an element is not finite in it."""
    with np.errstate(over="ignore"):
        made = array.astype(dtype)
    return made if bool(np.isfinite(made).all()) else None


class Model:
    """A graph under simplification.

    Attributes
    ----------
    opset : int
        Opset of ONNX's own domain.
    gone : set of EditableNode
        The removed nodes.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        imports = json.loads(graph.attributes["opset_import"])
        self.opset = int(imports.get("", imports.get("ai.onnx", 1)))
        self.gone: set[EditableNode] = set()
        self._names: NameSource | None = None

    def array(self, value: EditableValue | None) -> np.ndarray[Any, Any] | None:
        """Return the array of a constant of the main graph, or None."""
        if value is None:
            return None
        node = value.node
        if not node.is_variable or _DEFAULT in node.attrs:
            return None
        return self.graph.args.get(node.name)

    def add_constant(self, wish: str, array: Any) -> EditableValue:
        """Add a weight under a free name like ``wish``."""
        return self.graph.add_parameter(self._fresh(wish), array).outputs[0]

    def add(
        self,
        wish: str,
        op: str,
        inputs: Sequence[EditableValue],
        attributes: Mapping[str, Any] | None = None,
    ) -> EditableNode:
        """Add an ONNX operator under a free name like ``wish``."""
        texts = {key: str(item) for key, item in (attributes or {}).items()}
        return self.graph.add_node(op, inputs, texts, name=self._fresh(wish))

    def _fresh(self, wish: str) -> str:
        if self._names is None:
            self._names = NameSource({node.name for node in self.graph.nodes})
        return self._names.fresh(wish)

    def replace(self, node: EditableNode, by: EditableValue | Sequence[EditableValue]) -> None:
        """Replace the outputs of a node, and remove it with the nodes that only it needed."""
        values = [by] if isinstance(by, EditableValue) else list(by)
        for old, new in zip(node.outputs, values, strict=False):
            self.graph.replace(old, new)
        self.remove_unused([node])

    def remove_unused(self, nodes: Sequence[EditableNode]) -> None:
        """Remove unused nodes among these, and nodes that only they needed; keep model inputs."""
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node in self.gone or node.is_used or node.name == ABSENT:
                continue
            if node.is_variable and not is_constant(self.graph, node):
                continue
            self.gone.add(node)
            inputs = [value.node for value in node.inputs]
            if node.is_variable and node.name in self.graph.args:
                del self.graph.args[node.name]
            self.graph.remove(node)
            pending.extend(inputs)
