"""From the text of a graph to the graph that passes see, and the memory of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passlib import _core
from passlib.dialects import json_text
from passlib.dialects.nnvm.findings import Finding
from passlib.dialects.nnvm.operators import count_outputs
from passlib.dialects.nnvm.ordering import sort_places
from passlib.dialects.nnvm.structure import ATTRIBUTE_KEYS, control_dependencies, examine
from passlib.errors import FormatError, UnsoundFileError
from passlib.node import VARIABLE

__all__ = [
    "PLACE",
    "Document",
    "GraphTemplate",
    "described",
    "merged_attributes",
    "parse",
    "read",
    "visible_attributes",
]

PLACE = "__id__"
"""The attribute by which a node is known again: its place in the file."""


@dataclass(frozen=True)
class GraphTemplate:
    """A graph object of a file, and what became of it.

    Attributes
    ----------
    root : dict
        The object as parsed.
    names : sequence of str
        Names that the nodes have in the graph; operators without a name of their own got one.
    outputs : sequence of int
        Outputs of each node.
    nested : mapping of (int, int) to GraphTemplate
        By place of the node and number of its nested graph.
    """

    root: dict[str, Any]
    names: Sequence[str]
    outputs: Sequence[int]
    nested: Mapping[tuple[int, int], GraphTemplate] = field(default_factory=dict)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The node objects."""
        nodes: list[dict[str, Any]] = self.root["nodes"]
        return nodes


@dataclass(frozen=True)
class Document:
    """A file that was read.

    Attributes
    ----------
    text : bytes
    graph : GraphTemplate
    weights : tuple of str
        Names in the file of weights beside it, in its order.
    mxnet_weights : bool
        Whether that was one of MXNet's, with ``arg:`` and ``aux:`` before the names.
    """

    text: bytes
    graph: GraphTemplate
    weights: tuple[str, ...] = ()
    mxnet_weights: bool = False


def parse(text: bytes) -> tuple[Any, list[Finding]]:
    """Read a text and check it.

    Returns
    -------
    root : object
    findings : list of Finding
        All that is wrong, in the order of the file.

    Raises
    ------
    FormatError
        The text is not JSON.
    """
    root = json_text.parse(text)
    findings: list[Finding] = []
    examine(root, findings.append)
    return root, findings


def read(text: bytes) -> tuple[_core.Graph, Document]:
    """Read a graph and the memory of its text.

    Raises
    ------
    FormatError
        The text is no graph; the message has the place and counts what else is wrong.
    UnsoundFileError
        The graph contradicts itself.
    """
    root, findings = parse(text)
    errors = [f for f in findings if f.severity == "error" and not f.bearable]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
        kind = UnsoundFileError if first.unsound else FormatError
        raise kind(f"{first.place}: {first.message}{more}")
    template = _template(root)
    graph = _build(template)
    graph.check()
    return graph, Document(text, template)


def merged_attributes(node: Mapping[str, Any]) -> dict[str, str]:
    """Give the attributes of a node object, under whichever keys they stand."""
    merged: dict[str, str] = {}
    for key in ATTRIBUTE_KEYS:
        if key in node:
            merged.update(node[key])
    return merged


def visible_attributes(node: Mapping[str, Any]) -> dict[str, str]:
    """Give the attributes of a node object that a pass sees under their own names."""
    merged = merged_attributes(node)
    merged.pop(PLACE, None)
    return merged


def _template(root: dict[str, Any]) -> GraphTemplate:
    nodes = root["nodes"]
    nested = {
        (place, i): _template(subgraph)
        for place, node in enumerate(nodes)
        for i, subgraph in enumerate(node.get("subgraphs", ()))
    }
    return GraphTemplate(root, _unique_names(nodes), _count_outputs(root), nested)


def _unique_names(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keep names of variables; give operators that have none, or another's, a place with it."""
    taken = {node["name"] for node in nodes if node["op"] == VARIABLE}
    given = {node["name"] for node in nodes}
    names = []
    for place, node in enumerate(nodes):
        name = node["name"]
        if node["op"] != VARIABLE:
            if name in taken or not name:
                name = f"{name}_{place}"
                while name in given or name in taken:
                    name += "_"
            taken.add(name)
        names.append(name)
    return names


def _count_outputs(root: Mapping[str, Any]) -> list[int]:
    nodes = root["nodes"]
    if "node_row_ptr" in root:
        rows = root["node_row_ptr"]
        return [rows[i + 1] - rows[i] for i in range(len(nodes))]
    used = [0] * len(nodes)
    for user in nodes:
        for entry in user["inputs"]:
            used[entry[0]] = max(used[entry[0]], entry[1] + 1)
    for entry in root["heads"]:
        used[entry[0]] = max(used[entry[0]], entry[1] + 1)
    return [
        max(used[place], count_outputs(node["op"], merged_attributes(node)))
        for place, node in enumerate(nodes)
    ]


def described(template: GraphTemplate) -> tuple[list[Any], list[tuple[int, int, int]]]:
    """Describe the nodes and heads of a graph as `_core.Graph.build` wants them.

    The graph's ``nodes()`` and ``heads()`` are equal to that as long as nobody changed it, save
    for nested graphs.
    """
    nodes = template.nodes
    order = _order(nodes)
    position: Sequence[int] = range(len(nodes))
    if order != list(position):
        position = [0] * len(nodes)
        for i, place in enumerate(order):
            position[place] = i
    rows = []
    for place in order:
        node = nodes[place]
        attributes = merged_attributes(node)
        attributes[PLACE] = str(place)
        rows.append(
            (
                node["op"],
                template.names[place],
                attributes,
                [_moved(entry, position) for entry in node["inputs"]],
                template.outputs[place],
                [position[other] for other in node.get("control_deps", ())],
                [_build(template.nested[place, i]) for i in range(len(node.get("subgraphs", ())))],
            )
        )
    return rows, [_moved(entry, position) for entry in template.root["heads"]]


def _build(template: GraphTemplate) -> _core.Graph:
    return _core.Graph.build(*described(template))


def _moved(entry: Sequence[int], position: Sequence[int]) -> tuple[int, int, int]:
    return position[entry[0]], entry[1], entry[2] if len(entry) > 2 else 0


def _order(nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Give the order of the file, or where that has uses before makers, one that has not."""
    needs = [[entry[0] for entry in node["inputs"]] + control_dependencies(node) for node in nodes]
    if all(not needed or max(needed) < place for place, needed in enumerate(needs)):
        return list(range(len(nodes)))
    return sort_places(needs)
