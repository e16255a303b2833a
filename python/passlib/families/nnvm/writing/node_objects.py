"""Node objects of a file: changed ones, and those that a pass added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from passlib.families.nnvm.reading.structure import ATTRIBUTE_KEYS, BACKWARD_SOURCE
from passlib.families.nnvm.reading.template import PLACE, visible_attributes
from passlib.graph.node import VARIABLE

_ORDER = ("op", "name", "attrs", "inputs", "control_deps", "subgraphs")


@dataclass(frozen=True)
class NodeStyle:
    """The form in which the program that wrote a file writes nodes.

    Attributes
    ----------
    order : tuple of str
        Keys, in order.
    attributes : str
        The key for attributes: ``attr`` or ``attrs``.
    has_param : bool
        Whether attributes of operators are under ``param``, apart from the user's.
    writes_empty : frozenset of str
        Keys of attributes that are written even if empty.
    constants : mapping of str to value
        Keys that every node has with the same value.
    entry_size : int
        Numbers in an entry, 2 or 3.
    """

    order: tuple[str, ...] = _ORDER
    attributes: str = "attrs"
    has_param: bool = False
    writes_empty: frozenset[str] = frozenset()
    constants: Mapping[str, Any] = field(default_factory=dict)
    entry_size: int = 3


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

    Parameters
    ----------
    original : mapping
        The node object.
    op : str
    attributes : mapping of str to str
        All current attributes of the node.
    changes : mapping
        New values of other members; None removes one.
    style : NodeStyle
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
