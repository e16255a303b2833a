"""From a graph back to the object of a file: unchanged parts stay the objects that were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import passlib._core as _core
from passlib.dialects.json_text import keep
from passlib.errors import UnsupportedError
from passlib.families.nnvm.reading.file import (
    PLACE,
    STRUCTURE,
    GraphTemplate,
    listed_types,
    visible_attributes,
)
from passlib.families.nnvm.reading.structure import (
    ATTRIBUTE_KEYS,
    BACKWARD_SOURCE,
    GRAPH_ATTRIBUTE_KEYS,
    is_integer,
)
from passlib.families.nnvm.schema import TVM_OPERATOR
from passlib.families.nnvm.writing.outputs import (
    Arrangement,
    edited,
    number_outputs,
    stated_type,
    types_by_output,
)
from passlib.graph.node import VARIABLE
from passlib.lowering.types import TypeSpec

_ORDER = ("op", "name", "attrs", "inputs", "control_deps", "subgraphs")


@dataclass(frozen=True)
class NodeStyle:
    """The form in which the program that wrote a file writes nodes."""

    order: tuple[str, ...] = _ORDER
    """Keys, in order."""
    attributes: str = "attrs"
    """The key for attributes: ``attr`` or ``attrs``."""
    has_param: bool = False
    """Whether attributes of operators are under ``param``, apart from the user's."""
    writes_empty: frozenset[str] = frozenset()
    """Keys of attributes that are written even if empty."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Keys that every node has with the same value."""
    entry_size: int = 3
    """Numbers in an entry, 2 or 3."""


def node_style(root: Mapping[str, Any]) -> NodeStyle:
    """Determine the form of a graph's nodes."""
    nodes: Sequence[dict[str, Any]] = root["nodes"]
    if not nodes:
        return NodeStyle()
    keys = {key for node in nodes for key in node}
    fullest = max(nodes, key=len)
    attributes = "attr" if "attrs" not in keys and keys & {"attr", "param"} else "attrs"
    constants = {
        key: value
        for key, value in nodes[0].items()
        if key not in _ORDER
        and key not in ATTRIBUTE_KEYS
        and not isinstance(value, (dict, list))
        and all(key in node and node[key] == value for node in nodes)
    }
    if all(BACKWARD_SOURCE in node for node in nodes):
        constants[BACKWARD_SOURCE] = -1
    entries = [entry for node in nodes for entry in node["inputs"]] or list(root["heads"])
    return NodeStyle(
        _order(fullest, attributes, has_param="param" in keys),
        attributes,
        "param" in keys,
        frozenset(key for key in ATTRIBUTE_KEYS if any(node.get(key) == {} for node in nodes)),
        constants,
        min(map(len, entries), default=3),
    )


def _order(fullest: Iterable[str], attributes: str, *, has_param: bool) -> tuple[str, ...]:
    """Complete the keys of the fullest node, placed as in NNVM, or as in MXNet before NNVM."""
    order = list(fullest)
    usual = [attributes if key == "attrs" else key for key in _ORDER]
    if has_param:
        usual.remove(attributes)
        usual.append(attributes)
    for place, key in enumerate(usual):
        if key not in order:
            later = [order.index(other) for other in usual[place + 1 :] if other in order]
            order.insert(min(later, default=len(order)), key)
    return tuple(order)


def entry_list(
    entries: Sequence[tuple[int, int, int]], before: Sequence[Sequence[int]], style: NodeStyle
) -> list[list[int]]:
    """Return entries as lists, each with as many numbers as the former one in its place."""
    written = []
    for slot, entry in enumerate(entries):
        size = len(before[slot]) if slot < len(before) else style.entry_size
        written.append(list(entry) if size == 3 or entry[2] else list(entry[:2]))
    return written


def new_object(
    op: str,
    name: str,
    attributes: Mapping[str, str],
    inputs: Sequence[tuple[int, int, int]],
    control_deps: Sequence[int],
    subgraphs: Sequence[Any],
    style: NodeStyle,
) -> dict[str, Any]:
    """Return the object of a node that the file did not have."""
    members: dict[str, Any] = {
        "op": op,
        "name": name,
        **style.constants,
        "inputs": entry_list(inputs, (), style),
    }
    _place_attributes(members, op, dict(sorted(attributes.items())), style)
    for key, value in (("control_deps", control_deps), ("subgraphs", subgraphs)):
        if value:
            members[key] = list(value)
    return {key: members[key] for key in style.order if key in members} | members


def changed_object(
    original: Mapping[str, Any],
    op: str,
    attributes: Mapping[str, str],
    changes: Mapping[str, Any],
    style: NodeStyle,
) -> dict[str, Any]:
    """Return the object of a changed node, with its unchanged members.

    ``attributes`` are all of the node's own now; ``changes`` are new values of other members, None
    removes one.
    """
    members = dict(original)
    if visible_attributes(original) != attributes:
        _edit_attributes(members, op, attributes, style)
    for key, value in changes.items():
        if value is None:
            members.pop(key, None)
        elif key in members:
            members[key] = value
        else:
            _insert(members, key, value, style)
    return members


def _place_attributes(
    members: dict[str, Any], op: str, attributes: Mapping[str, str], style: NodeStyle
) -> None:
    """Add attributes, of a new node or new ones of an old node, under their keys."""
    own, users = dict(attributes), dict[str, str]()
    if style.has_param:
        users = {k: v for k, v in own.items() if op == VARIABLE or k.startswith("__")}
        own = {k: v for k, v in own.items() if k not in users}
        parts = {"param": own, style.attributes: users}
    else:
        parts = {style.attributes: own}
    for key, added in parts.items():
        if key in members:
            if added:
                members[key] = {**members[key], **added}
        elif added or key in style.writes_empty:
            _insert(members, key, added, style)


def _edit_attributes(
    members: dict[str, Any], op: str, attributes: Mapping[str, str], style: NodeStyle
) -> None:
    present = [key for key in ATTRIBUTE_KEYS if key in members]
    owner = {name: key for key in present for name in members[key]}
    for key in present:
        before = members[key]
        after = {
            name: attributes[name] if owner[name] == key and name != PLACE else value
            for name, value in before.items()
            if name in attributes or name == PLACE
        }
        if after != before:
            members[key] = after
            if not after and key not in style.writes_empty:
                del members[key]
    added = {name: attributes[name] for name in sorted(attributes) if name not in owner}
    if not added:
        return
    if present and "param" not in present:
        # A node may use another key than the others.
        style = replace(style, attributes=present[-1], has_param=False)
    _place_attributes(members, op, added, style)


def _insert(members: dict[str, Any], key: str, value: Any, style: NodeStyle) -> None:
    """Add a member at its place in the file's order of keys."""
    if key in members:
        return
    rank = {name: i for i, name in enumerate(style.order)}
    mine = rank.get(key, len(rank))
    later = [name for name in members if rank.get(name, len(rank)) > mine]
    if later:
        following = {}
        for name in list(members)[list(members).index(later[0]) :]:
            following[name] = members.pop(name)
        members[key] = value
        members.update(following)
    else:
        members[key] = value


_T = TypeVar("_T")

EMPTY = GraphTemplate({"nodes": [], "arg_nodes": [], "node_row_ptr": [0], "heads": []}, (), ())
"""The template of a graph that was in no file."""


def graph_object(
    graph: _core.Graph,
    template: GraphTemplate,
    members: Mapping[str, Any],
    arrays: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the object of a graph: the original one if nothing changed.

    ``members`` are its members besides the graph itself, as in the file or as a pass left them;
    ``arrays`` are parameters by name.
    """
    root = template.root
    before = {key: value for key, value in root.items() if key not in STRUCTURE}
    same = members.keys() == before.keys() and all(
        members[key] is value for key, value in before.items()
    )
    if same and template.graph is not None and template.graph.equals(graph):
        return root
    return _Writer(Arrangement(graph, template), arrays).value(members)


class _Writer:
    """Writes one changed graph."""

    def __init__(self, arrangement: Arrangement, arrays: Mapping[str, Any]) -> None:
        self.arrangement = arrangement
        self.template = arrangement.template
        self.arrays = arrays
        self.style = node_style(self.template.root)
        self.executable = any(node["op"] == TVM_OPERATOR for node in self.template.nodes)
        origins = arrangement.origins
        self.moved = {origins[p]: i for i, p in enumerate(arrangement.order)}
        """New place of each node, by its place in the file."""

    def value(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the graph object; ``members`` as in `graph_object`."""
        root, heads = self.template.root, self.arrangement.heads
        made: dict[str, Any] = {
            "nodes": keep([self._node_object(p) for p in self.arrangement.order], root["nodes"]),
            "arg_nodes": self._arg_nodes(),
            "heads": _kept(entry_list(heads, root["heads"], self.style), root["heads"]),
        }
        if "node_row_ptr" in root:
            rows = [0]
            for position in self.arrangement.order:
                rows.append(rows[-1] + self.arrangement.counts[position])
            made["node_row_ptr"] = _kept(rows, root["node_row_ptr"])
        untouched = made["nodes"] is root["nodes"] and made["heads"] is root["heads"]
        for key, value in members.items():
            made[key] = value
            unchanged = untouched and value is root.get(key, {})
            if key in GRAPH_ATTRIBUTE_KEYS and isinstance(value, dict) and not unchanged:
                made[key] = self._edited(key, value)
            if key in GRAPH_ATTRIBUTE_KEYS and isinstance(made[key], Mapping):
                self._refuse_restated(listed_types(made[key]))
        result = {key: made[key] for key in root if key in made}
        result |= {key: value for key, value in made.items() if key not in root}
        if len(result) == len(root) and all(result[key] is root.get(key) for key in result):
            return root
        return result

    def _node_object(self, position: int) -> Any:
        arrangement, number = self.arrangement, self.arrangement.number
        op, name, attributes, entries, _, dependencies, subgraphs = arrangement.nodes[position]
        inputs = [(number[p], index, version) for p, index, version in entries]
        waits = [number[p] for p in dependencies]
        place = arrangement.origins[position]
        original = self.template.nodes[place] if place >= 0 else {}
        if op == TVM_OPERATOR and (place < 0 or len(entries) != len(original["inputs"])):
            # A call declares its number of inputs.
            attributes = {**attributes, "num_inputs": str(len(entries))}
        nested = [self._nested(place, i, subgraph) for i, subgraph in enumerate(subgraphs)]
        if op == VARIABLE and self.executable:
            # TVM's reader takes the attributes of any node for those of a tvm_op.
            attributes = visible_attributes(original)
        if place < 0:
            return new_object(op, name, attributes, inputs, waits, nested, self.style)
        changes: dict[str, Any] = {}
        if name != self.template.names[place]:
            changes["name"] = name
        written = entry_list(inputs, original["inputs"], self.style)
        if written != original["inputs"]:
            changes["inputs"] = written
        if waits != original.get("control_deps", []):
            changes["control_deps"] = waits or None
        source = original.get(BACKWARD_SOURCE, -1)
        moved = self.moved.get(source, -1) if is_integer(source) else source
        if moved != source:
            changes[BACKWARD_SOURCE] = moved
        before = original.get("subgraphs", [])
        if keep(nested, before) is not before:
            changes["subgraphs"] = nested or None
        if not changes and visible_attributes(original) == attributes:
            return original
        return changed_object(original, op, attributes, changes, self.style)

    def _nested(self, place: int, i: int, graph: _core.Graph) -> dict[str, Any]:
        template = self.template.nested.get((place, i), EMPTY)
        members = {k: v for k, v in template.root.items() if k not in STRUCTURE}
        return graph_object(graph, template, members, self.arrays)

    def _arg_nodes(self) -> list[int]:
        before: list[int] = self.template.root["arg_nodes"]
        nodes, order = self.arrangement.nodes, self.arrangement.order
        variables = [i for i, p in enumerate(order) if nodes[p].op == VARIABLE]
        originals = [i for i, node in enumerate(self.template.nodes) if node["op"] == VARIABLE]
        if before == originals:
            return _kept(variables, before)
        # The file has another order or omits some: it is kept for those that it lists.
        now = {self.arrangement.origins[order[i]]: i for i in variables}
        kept = [now[place] for place in before if place in now]
        known = {now[place] for place in originals if place in now}
        return _kept(kept + [i for i in variables if i not in known], before)

    def _edited(self, key: str, current: Mapping[str, Any]) -> Mapping[str, Any]:
        """Update lists with one value for each output to the nodes."""
        outputs = number_outputs(self.arrangement)
        types: list[TypeSpec] = []

        def type_of(entry: int) -> TypeSpec:
            if not types:
                listed = listed_types(current)
                types.extend(types_by_output(self.arrangement, outputs, listed, self.arrays))
            return types[entry]

        return edited(self.template.root.get(key, {}), current, outputs, type_of)

    def _refuse_restated(self, listed: Sequence[TypeSpec]) -> None:
        """Refuse another type of an input where the graph lists those of all outputs."""
        arrangement, first = self.arrangement, 0
        for position in arrangement.order:
            node, place = arrangement.nodes[position], arrangement.origins[position]
            entry, first = first, first + arrangement.counts[position]
            if node.op != VARIABLE or place < 0 or entry >= len(listed):
                continue
            before = visible_attributes(self.template.nodes[place])
            stated, known = stated_type(node.attrs), listed[entry]
            for key, same in (
                ("__shape__", stated.shape == known.shape),
                ("__dtype__", stated.dtype == known.dtype),
            ):
                if not same and node.attrs.get(key) not in (None, before.get(key)):
                    raise UnsupportedError(
                        f"variable {node.name!r}: a pass states {key} {node.attrs[key]!r}, but the "
                        f"graph lists {known.dtype} of shape {known.shape} for it, and a type for "
                        "each result that depends on it; change these graph attributes, too"
                    )


def _kept(value: list[_T], original: list[_T]) -> list[_T]:
    """Return the original if it has this value, since it keeps its text."""
    return original if value == original else value
