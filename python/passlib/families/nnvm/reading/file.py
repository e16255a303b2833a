"""From the text of a file to the graph and the attributes that passes see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects import json_text
from passlib.dialects.json_text import parse_plain
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, PasslibError, UnsoundFileError
from passlib.families.nnvm.printing import NNVM, print_value
from passlib.families.nnvm.reading.structure import (
    ATTRIBUTE_KEYS,
    GRAPH_ATTRIBUTE_KEYS,
    Finding,
    control_dependencies,
    examine,
)
from passlib.families.nnvm.schema import count_outputs
from passlib.files.regular import memory_named, read_regular
from passlib.graph.attributes import parse_position
from passlib.graph.node import VARIABLE
from passlib.graph.ordering import depth_first_order
from passlib.lowering.types import Shape, TypeSpec

PLACE = "__id__"
"""The attribute that identifies a node: its place in the file."""


@dataclass(frozen=True)
class GraphTemplate:
    """A graph object of a file as parsed, and the graph that was made of it, if there is a file.

    ``names`` are unique names of the nodes, ``outputs`` their numbers of outputs; ``nested`` has
    nested graphs by place of the node and number of the graph. Nothing changes ``graph``.
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
    """Parse a text and check it; findings are in the order of the file.

    ``warnings`` asks also for slow checks that yield only warnings. Raises `FormatError` if the
    text is not JSON.
    """
    root = json_text.parse(text)
    findings: list[Finding] = []
    examine(root, findings.append, warnings=warnings)
    return root, findings


def read(text: bytes) -> tuple[GraphTemplate, _core.Graph]:
    """Read a graph, with the template for writing it back.

    Raises `FormatError` if the text is no graph; the message has the place of the first error and
    counts the rest; `UnsoundFileError` if the graph contradicts itself.
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


ATTRIBUTES: Final = "attrs"
"""The name of a graph's typed attributes for passes, whatever their key in the file."""

STRUCTURE: Final = ("nodes", "arg_nodes", "node_row_ptr", "heads")
"""Members of a graph object that define the graph."""


@dataclass(frozen=True)
class Document:
    """A file that was read."""

    text: bytes
    native: _core.Graph
    """The graph that passes see, which must not be changed."""
    attributes: Mapping[str, str]
    """The top-level members that passes see, as JSON by key."""
    weights: tuple[str, ...] = ()
    """Names in the weight file next to it, in its order."""
    mxnet_weights: bool = False
    """Whether the weight file was one of MXNet's, with names that begin ``arg:`` or ``aux:``."""

    @cached_property
    def graph(self) -> GraphTemplate:
        """The graph object as parsed, which is needed for writing a changed model."""
        return replace(read(self.text)[0], graph=self.native)

    def is_of(self, model: ModelData) -> bool:
        """Whether a model is as it was read, but for its weights."""
        return dict(model.attributes) == self.attributes and self.native.equals(model.graph)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reread, (self.text, self.weights, self.mxnet_weights)


def _reread(text: bytes, weights: tuple[str, ...], mxnet_weights: bool) -> Document:
    return replace(load(text)[2], weights=weights, mxnet_weights=mxnet_weights)


def load(text: bytes) -> tuple[_core.Graph, dict[str, str], Document]:
    """Read a graph, its own attributes as JSON by key, and the document for writing it back.

    Raises `FormatError` if the text is no graph.
    """
    template, graph = read(text)
    graph.check()
    attributes = own_attributes(template, text)
    return graph, attributes, Document(text, graph, dict(attributes))


def read_file(path: Path) -> tuple[_core.Graph, dict[str, str], Document]:
    """Read a file like `load`; the message of a FormatError has the path."""
    with memory_named(path):
        text = read_regular(path)
        try:
            return load(text)
        except FormatError as error:
            raise error.within(path) from error


def own_attributes(template: GraphTemplate, text: bytes) -> dict[str, str]:
    """Return the top-level members of a graph that passes see, as JSON by key."""
    found = {}
    for key, value in template.root.items():
        if key not in STRUCTURE:
            visible = ATTRIBUTES if key in GRAPH_ATTRIBUTE_KEYS else key
            found[visible] = print_value(value, text, NNVM).decode()
    return found


_CODES = (
    *("float32", "float64", "float16", "uint8", "int32", "int8", "int64"),
    *("int16", "uint16", "uint32", "uint64"),
)
"""NNVM's element types by code."""


def input_types(model: ModelData) -> dict[str, TypeSpec]:
    """Return the types that the graph attributes of a file list for its variables."""
    if ATTRIBUTES not in model.attributes:
        return {}
    attributes = parse_plain(model.attributes[ATTRIBUTES])
    listed = listed_types(attributes if isinstance(attributes, dict) else {})
    nodes = model.graph.nodes()
    first = [0]
    for outputs in _outputs(model, nodes):
        first.append(first[-1] + outputs)
    types = {}
    for node in nodes:
        place = parse_position(node.attrs.get(PLACE, ""))
        if node.op != VARIABLE or place is None or place >= len(first) - 1:
            continue
        if first[place] < len(listed):
            types[node.name] = listed[first[place]]
    return types


def _outputs(model: ModelData, nodes: Sequence[_core.NodeTuple]) -> Sequence[int]:
    """Return the number of outputs of each node of the file; none if that is not known."""
    if isinstance(model.template, Document):
        return model.template.graph.outputs
    if any(node.attrs.get(PLACE) != str(place) for place, node in enumerate(nodes)):
        return ()
    return [node.num_outputs for node in nodes]


def listed_types(attributes: Mapping[str, Any]) -> list[TypeSpec]:
    """Read the types of all entries from the attributes of a graph."""
    shapes = _values(attributes, "shape")
    names = _values(attributes, "dltype")
    codes = _values(attributes, "dtype")
    count = max(map(len, (shapes, names, codes)))
    listed = []
    for i in range(count):
        code = codes[i] if i < len(codes) else -1
        dtype = named_dtype(names[i]) if i < len(names) else _of_code(code)
        listed.append(TypeSpec(dtype, _shape(shapes[i]) if i < len(shapes) else None))
    return listed


def _values(attributes: Mapping[str, Any], name: str) -> Sequence[Any]:
    pair = attributes.get(name)
    if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list):
        return pair[1]
    return ()


def named_dtype(name: Any) -> np.dtype | None:
    """Return the element type of a name; None for an unknown or empty one."""
    try:
        return dtypes.as_dtype(name) if isinstance(name, str) and name else None
    except (PasslibError, TypeError, ValueError):
        return None


def _of_code(code: Any) -> np.dtype | None:
    return np.dtype(_CODES[code]) if type(code) is int and 0 <= code < len(_CODES) else None


def _shape(sizes: Any) -> Shape | None:
    if not isinstance(sizes, list) or not all(type(size) is int for size in sizes):
        return None
    return tuple(size if size >= 0 else None for size in sizes)
