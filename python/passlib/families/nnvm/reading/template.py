"""From the text of a graph to a template for writing it back, and the graph that passes see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import passlib._core as _core
from passlib.dialects import json_text
from passlib.errors import FormatError, UnsoundFileError
from passlib.families.nnvm.reading.findings import Finding
from passlib.families.nnvm.reading.structure import ATTRIBUTE_KEYS, control_dependencies, examine
from passlib.families.nnvm.schema import count_outputs
from passlib.graph.node import VARIABLE
from passlib.graph.ordering import depth_first_order

PLACE = "__id__"
"""The attribute that identifies a node: its place in the file."""


@dataclass(frozen=True)
class GraphTemplate:
    """A graph object of a file, and the graph that was made of it.

    Attributes
    ----------
    root : dict
        The object as parsed.
    names : sequence of str
        Unique names of the nodes in the graph.
    outputs : sequence of int
        Number of outputs of each node.
    graph : _core.Graph or None
        The graph that passes see, which must not be changed; None if there was no file.
    nested : mapping of (int, int) to GraphTemplate
        Nested graphs, by place of the node and number of the graph.
    """

    root: dict[str, Any]
    names: Sequence[str]
    outputs: Sequence[int]
    graph: _core.Graph | None = None
    nested: Mapping[tuple[int, int], GraphTemplate] = field(default_factory=dict)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The node objects."""
        nodes: list[dict[str, Any]] = self.root["nodes"]
        return nodes


def parse(text: bytes, *, warnings: bool = True) -> tuple[Any, list[Finding]]:
    """Parse a text and check it.

    Parameters
    ----------
    text : bytes
    warnings : bool
        Whether to make also slow checks that yield only warnings.

    Returns
    -------
    root : object
    findings : list of Finding
        In the order of the file.

    Raises
    ------
    FormatError
        The text is not JSON.
    """
    root = json_text.parse(text)
    findings: list[Finding] = []
    examine(root, findings.append, warnings=warnings)
    return root, findings


def read(text: bytes) -> tuple[GraphTemplate, _core.Graph]:
    """Read a graph, with the template for writing it back.

    Raises
    ------
    FormatError
        The text is no graph; the message has the place of the first error and counts the rest.
    UnsoundFileError
        The graph contradicts itself.
    """
    root, findings = parse(text, warnings=False)
    errors = [f for f in findings if f.severity == "error" and not f.bearable]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
        kind = UnsoundFileError if first.unsound else FormatError
        raise kind(f"{first.place}: {first.message}{more}")
    return _template(root)


def merged_attributes(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a node object, joined from all keys that store them."""
    merged: dict[str, str] = {}
    for key in ATTRIBUTE_KEYS:
        if key in node:
            merged.update(node[key])
    return merged


def visible_attributes(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a node object that a pass sees under their own names."""
    merged = merged_attributes(node)
    merged.pop(PLACE, None)
    return merged


def _template(root: dict[str, Any]) -> tuple[GraphTemplate, _core.Graph]:
    nodes = root["nodes"]
    nested: dict[tuple[int, int], GraphTemplate] = {}
    subgraphs: dict[int, list[_core.Graph]] = {}
    for place, node in enumerate(nodes):
        for i, subgraph in enumerate(node.get("subgraphs", ())):
            nested[place, i], inner = _template(subgraph)
            subgraphs.setdefault(place, []).append(inner)
    names, outputs = _unique_names(nodes), _count_outputs(root)
    graph = _build(root, names, outputs, subgraphs)
    return GraphTemplate(root, names, outputs, graph, nested), graph


def _unique_names(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the nodes, with the place appended where a name is empty or taken."""
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


def _build(
    root: Mapping[str, Any],
    names: Sequence[str],
    outputs: Sequence[int],
    subgraphs: Mapping[int, list[_core.Graph]],
) -> _core.Graph:
    nodes = root["nodes"]
    rows = []
    moved = None if _is_ordered(nodes) else _positions(nodes)
    for place, node in enumerate(nodes):
        attributes = merged_attributes(node)
        attributes[PLACE] = str(place)
        inputs = node["inputs"]
        waits = node.get("control_deps", ())
        if moved is not None:
            inputs = [_moved(entry, moved) for entry in inputs]
            waits = [moved[other] for other in waits]
        nested = subgraphs.get(place, ()) if subgraphs else ()
        rows.append((node["op"], names[place], attributes, inputs, outputs[place], waits, nested))
    heads = root["heads"]
    if moved is not None:
        rows = [row for _, row in sorted(zip(moved, rows, strict=True), key=itemgetter(0))]
        heads = [_moved(entry, moved) for entry in heads]
    return _core.Graph.build(rows, heads)


def _moved(entry: Sequence[int], position: Sequence[int]) -> tuple[int, int, int]:
    return position[entry[0]], entry[1], entry[2] if len(entry) > 2 else 0


def _is_ordered(nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each node comes after those that it needs."""
    for place, node in enumerate(nodes):
        for entry in node["inputs"]:
            if entry[0] >= place:
                return False
        if "control_deps" in node and max(node["control_deps"], default=-1) >= place:
            return False
    return True


def _positions(nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the position of each node in an order in which it comes after those it needs."""
    needs = [[entry[0] for entry in node["inputs"]] + control_dependencies(node) for node in nodes]
    positions = [0] * len(nodes)
    for position, place in enumerate(depth_first_order(needs)):
        positions[place] = position
    return positions
