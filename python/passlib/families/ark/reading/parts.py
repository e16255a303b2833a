"""From the text of an ARK file to its parts: the file as parsed, its ops, and their graph."""

from __future__ import annotations

from dataclasses import dataclass

import passlib._core as _core
from passlib.errors import GraphError, UnsoundFileError, UnsupportedError
from passlib.families.ark.document import Document
from passlib.families.ark.operators import FileOp
from passlib.families.ark.reading.document import read_document
from passlib.families.ark.reading.heads import find_heads
from passlib.families.ark.reading.ops import read_ops
from passlib.families.ark.reading.order import order_units
from passlib.families.ark.reading.wiring import Wired, wire

_MOST_SOURCES = 2_000_000
"""Edges between the nodes of one file."""


@dataclass(frozen=True)
class Parts:
    """An ARK file, taken apart.

    Attributes
    ----------
    document : Document
    ops : dict of str to FileOp
        By the ``__id__`` of their nodes.
    names : dict of str to str
        Names of their nodes in the graph, by the same key.
    graph : _core.Graph
    positions : dict of int to int
        Position of each node of a model file by its Id.
    needs : list of set of int
        For each of them, the nodes that its ops need, through tensors or otherwise.
    control : list of set of int
        The part of ``needs`` that no tensor shows.
    """

    document: Document
    ops: dict[str, FileOp]
    names: dict[str, str]
    graph: _core.Graph
    positions: dict[int, int]
    needs: list[set[int]]
    control: list[set[int]]


def read_parts(text: bytes) -> Parts:
    """Read a model file or a plan file.

    Raises
    ------
    FormatError
        The text is not an ARK file.
    UnsoundFileError
        It contradicts itself or is empty.
    """
    document = read_document(text)
    ops = read_ops(document)
    ordered = ops if document.plan else order_units(document, ops)
    wired = wire(ordered, document.rank)
    positions: dict[int, int] = {}
    needs: list[set[int]] = []
    control: list[set[int]] = []
    if not document.plan:
        positions = {unit["Id"]: i for i, unit in enumerate(document.units)}
        needs, control = _control(document, wired, positions)
    heads = [(node, index, 0) for node, index in find_heads(wired, document.rank)]
    if not heads:
        raise UnsoundFileError(f"{document.units_key}: no op returns or uses a tensor")
    try:
        graph = _core.Graph.build(wired.nodes, heads)
        graph.check()
    except GraphError as error:
        raise UnsoundFileError(str(error)) from error
    by_key = {op.place.key: op for op in ops}
    names = {key: wired.nodes[node].name for key, node in wired.node_of.items()}
    return Parts(document, by_key, names, graph, positions, needs, control)


def _control(
    document: Document, wired: Wired, positions: dict[int, int]
) -> tuple[list[set[int]], list[set[int]]]:
    """Add producers from which a node uses no tensor as its control dependencies.

    Returns
    -------
    needs, control : list of set of int
        As in `Parts`.
    """
    units: list[list[int]] = [[] for _ in document.units]
    unit_of: list[int] = []
    for node, op in enumerate(wired.op_of):
        unit_of.append(-1 if op is None else op.place.unit)
        if op is not None:
            units[op.place.unit].append(node)
    needs: list[set[int]] = []
    control: list[set[int]] = []
    steps = 0
    for number, unit in enumerate(document.units):
        shown = {
            unit_of[source]
            for node in units[number]
            for source in _real_sources(node, wired, unit_of)
        } - {-1, number}
        steps += len(shown)
        if steps > _MOST_SOURCES:
            raise UnsupportedError(
                f"{document.units_key}[{number}]: up to here, memory is written in so many parts "
                "that the nodes depend on each other in too many ways"
            )
        hidden = [positions[producer] for producer in unit["ProducerNodeIds"]]
        hidden = [producer for producer in hidden if producer not in shown | {number}]
        for producer in hidden:
            if units[number] and units[producer]:
                wired.nodes[units[number][0]].control_deps.append(units[producer][-1])
        control.append(set(hidden))
        needs.append(shown | control[-1])
    return needs, control


def _real_sources(node: int, wired: Wired, unit_of: list[int]) -> set[int]:
    """Find the nodes of the file that a node uses, directly or through implied nodes."""
    found: set[int] = set()
    pending = [source for source, _, _ in wired.nodes[node].inputs]
    if len(pending) == 1 and unit_of[pending[0]] >= 0:
        return {pending[0]}
    while pending:
        source = pending.pop()
        if source in found:
            continue
        found.add(source)
        if unit_of[source] < 0:
            pending += [further for further, _, _ in wired.nodes[source].inputs]
    return found
