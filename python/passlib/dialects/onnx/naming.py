"""Names for the values of an ONNX graph that a pass may have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from passlib.dialects.onnx.document import ABSENT, OUTER, Document
from passlib.errors import GraphError
from passlib.graph.attribute_text import parse_position
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE

__all__ = ["Names", "choose_names"]

if TYPE_CHECKING:
    from passlib._core import NodeTuple

Key = tuple[int, int]


@dataclass
class Names:
    """What the values of one graph are called.

    Attributes
    ----------
    of : dict of (int, int) to str
        By node and output.
    outputs : list of str
        Of the graph, in order.
    copies : list of (str, str)
        Pairs of a value and of the output of the graph that must be a copy of it.
    """

    of: dict[Key, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    copies: list[tuple[str, str]] = field(default_factory=list)


def choose_names(
    nodes: Sequence[NodeTuple],
    heads: Sequence[tuple[int, int, int]],
    document: Document,
    claims: Mapping[int, str],
    *,
    output_names: Sequence[str],
    around: Sequence[str],
    hidden: set[str],
    source: NameSource,
) -> Names:
    """Name the values of a graph: outputs of the graph first, then as in the file, then anew.

    Parameters
    ----------
    nodes, heads
        As `_core.Graph` gives them.
    document : Document
    claims : mapping of int to str
        The `ID` of each node that stands for one of the file.
    output_names : sequence of str
        Names of the graph's outputs in the file; they stay.
    around : sequence of str
        Names of the inputs of the node around this graph.
    hidden : set of str
        Names that came up in the graphs around this one: here they would hide those.
    source : NameSource

    Raises
    ------
    GraphError
        An input has the name of an output that it is not.
    """
    names = Names()
    captured = _name_captured(nodes, names, around)
    wanted = _wanted(heads, output_names, lambda key: _in_file(key, nodes, document, claims))
    if around:
        # What outputs of a nested graph are called does not matter outside of it.
        wanted = [
            None
            if wish in hidden or (wish in captured and names.of.get(head[:2]) != wish)
            else wish
            for head, wish in zip(heads, wanted, strict=True)
        ]
    first: dict[str, Key] = {}
    for number, (head, output, _) in enumerate(heads):
        wish = wanted[number]
        if wish is not None and first.setdefault(wish, (head, output)) != (head, output):
            wanted[number] = None  # an output that stood twice, and is two values now
    hidden = hidden | captured
    taken = _name_variables(nodes, names, claims, first, hidden, source)
    used = {(entry[0], entry[1]) for node in nodes for entry in node[3]}
    used.update((head, output) for head, output, _ in heads)
    highest: dict[int, int] = {}
    for position, output in used:
        highest[position] = max(highest.get(position, -1), output)
    for name, key in first.items():
        if key not in names.of:
            names.of[key] = name
            taken.add(name)
    reserved = taken | first.keys() | hidden
    for position, node in enumerate(nodes):
        if node[0] == VARIABLE:
            continue
        original = document.nodes.get(claims.get(position, ""))
        outputs = () if original is None else original.proto.output
        same = original is not None and original.proto.op_type == node[0]
        count = max(len(outputs) if same else max(node[4], 1), highest.get(position, -1) + 1)
        for index in range(count):
            key = (position, index)
            if key in names.of:
                continue
            old = str(outputs[index]) if index < len(outputs) else None
            if old == "" and key not in used:
                names.of[key] = ""
            elif old and old not in reserved:
                names.of[key] = old
                reserved.add(old)
            else:
                wish = node[1] if count == 1 else f"{node[1]}_{index}"
                names.of[key] = source.fresh(wish or node[0])
    _name_heads(heads, wanted, names, captured, source)
    return names


def _in_file(
    key: Key, nodes: Sequence[NodeTuple], document: Document, claims: Mapping[int, str]
) -> str:
    """Give the name that a value has in the file; empty if it is a new one."""
    node, output = key
    if nodes[node][0] == VARIABLE:
        return nodes[node][1]
    original = document.nodes.get(claims.get(node, ""))
    if original is None or output >= len(original.proto.output):
        return ""
    return str(original.proto.output[output])


def _wanted(
    heads: Sequence[tuple[int, int, int]],
    output_names: Sequence[str],
    in_file: Callable[[Key], str],
) -> list[str | None]:
    """Say which name each output of the graph should have; None for any new one."""
    if len(heads) == len(output_names):
        return list(output_names)
    # Outputs were added or removed: those that are still there are known by their values.
    left = list(output_names)
    wanted: list[str | None] = []
    for node, output, _ in heads:
        name = in_file((node, output))
        if name in left:
            left.remove(name)
            wanted.append(name)
        else:
            wanted.append(None)
    return wanted


def _name_captured(nodes: Sequence[NodeTuple], names: Names, around: Sequence[str]) -> set[str]:
    """Name what a nested graph takes from outside; the names that it must not give to others."""
    captured = set()
    for position, node in enumerate(nodes):
        outer = node[2].get(OUTER)
        if node[0] == VARIABLE and node[1] != ABSENT and outer is not None and around:
            names.of[position, 0] = _outer_name(outer, around, node[1])
            captured.add(names.of[position, 0])
    return captured


def _name_variables(
    nodes: Sequence[NodeTuple],
    names: Names,
    claims: Mapping[int, str],
    first: Mapping[str, Key],
    hidden: set[str],
    source: NameSource,
) -> set[str]:
    taken: set[str] = set()
    for position, node in enumerate(nodes):
        key, name = (position, 0), node[1]
        if node[0] != VARIABLE or key in names.of:
            continue
        if name == ABSENT:
            names.of[key] = ""
        elif name in hidden or first.get(name, key) != key:
            if claims.get(position, "").startswith("input."):
                raise GraphError(
                    f"input {name!r} has the name of an output that another node computes; "
                    "rename the input"
                )
            names.of[key] = source.fresh(name)
            taken.add(names.of[key])
        else:
            names.of[key] = name
            source.used.add(name)
            taken.add(name)
    return taken


def _outer_name(slot: str, around: Sequence[str], name: str) -> str:
    number = parse_position(slot)
    if number is None or number >= len(around):
        raise GraphError(
            f"variable {name!r} of a nested graph stands for input {slot} of the node around it, "
            f"which has {len(around)} inputs"
        )
    return around[number]


def _name_heads(
    heads: Sequence[tuple[int, int, int]],
    wanted: Sequence[str | None],
    names: Names,
    captured: set[str],
    source: NameSource,
) -> None:
    for (node, output, _), wish in zip(heads, wanted, strict=True):
        value = names.of[node, output]
        name = wish or value
        # A nested graph cannot give out a value from outside but by a copy.
        if wish is None and (value in names.outputs or value in captured):
            name = source.fresh(value)
        names.outputs.append(name)
        if name != value:
            names.copies.append((value, name))
