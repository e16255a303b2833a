"""From the text of an ARK file to a graph, with what is needed to write the file back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from passlib import _core
from passlib.dialects.ark import schema
from passlib.dialects.ark.document import Document, read_document
from passlib.dialects.ark.operators import FileOp, read_ops
from passlib.dialects.ark.ordering import order_units
from passlib.dialects.ark.wiring import Output, Wired, wire
from passlib.errors import GraphError, UnsoundFileError, UnsupportedError
from passlib.graph.node import VARIABLE

__all__ = ["Template", "read"]

_MOST_SOURCES = 2_000_000
"""Edges between the nodes of one file."""


@dataclass(frozen=True)
class Template:
    """What a model read from an ARK file keeps of it.

    Attributes
    ----------
    document : Document
    ops : dict of str to FileOp
        By the ``__id__`` of their nodes.
    names : dict of str to str
        Names of their nodes in the graph, by the same.
    graph : _core.Graph
        The graph as it was, which nobody may change.
    positions : dict of int to int
        Position of each node of a model file by its Id.
    needs : list of set of int
        For each of them, those that its ops need, by tensors or else.
    control : list of set of int
        Those of the needs that no tensor shows.
    """

    document: Document
    ops: dict[str, FileOp]
    names: dict[str, str]
    graph: _core.Graph
    positions: dict[int, int]
    needs: list[set[int]]
    control: list[set[int]]

    @cached_property
    def nodes(self) -> list[_core.NodeTuple]:
        """The graph's nodes."""
        return self.graph.nodes()


def read(text: bytes) -> tuple[_core.Graph, Template]:
    """Read a model file or a plan file.

    Raises
    ------
    FormatError
        The text is no ARK file.
    UnsoundFileError
        It contradicts itself, or has nothing in it.
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
    heads = [(node, index, 0) for node, index in _heads(wired, document.rank)]
    if not heads:
        raise UnsoundFileError(f"{document.units_key}: no op gives or uses a tensor")
    try:
        graph = _core.Graph.build(wired.nodes, heads)
        graph.check()
    except GraphError as error:
        raise UnsoundFileError(str(error)) from error
    by_key = {op.place.key: op for op in ops}
    names = {key: wired.nodes[node][1] for key, node in wired.node_of.items()}
    return graph, Template(document, by_key, names, graph, positions, needs, control)


def _control(
    document: Document, wired: Wired, positions: dict[int, int]
) -> tuple[list[set[int]], list[set[int]]]:
    """Add the producers of a node that no tensor shows as control dependencies.

    Returns
    -------
    needs, control : list of set of int
        As in `Template`.
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
                "that too much depends on too much"
            )
        hidden = [positions[producer] for producer in unit["ProducerNodeIds"]]
        hidden = [producer for producer in hidden if producer not in shown | {number}]
        for producer in hidden:
            if units[number] and units[producer]:
                wired.nodes[units[number][0]][5].append(units[producer][-1])
        control.append(set(hidden))
        needs.append(shown | control[-1])
    return needs, control


def _real_sources(node: int, wired: Wired, unit_of: list[int]) -> set[int]:
    """Find the nodes of the file that a node's inputs come from, through implied ones."""
    found: set[int] = set()
    pending = [source for source, _, _ in wired.nodes[node][3]]
    if len(pending) == 1 and unit_of[pending[0]] >= 0:
        return {pending[0]}
    while pending:
        source = pending.pop()
        if source in found:
            continue
        found.add(source)
        if unit_of[source] < 0:
            pending += [further for further, _, _ in wired.nodes[source][3]]
    return found


def _heads(wired: Wired, rank: int) -> list[Output]:
    """Find the outputs of the model, which the format does not name.

    They are the results, and views of results, that nobody uses, or that are only kept alive by an
    operator without results; not those in memory of another rank. Where there is none, whatever is
    not used.
    """
    used: set[Output] = set()
    recast: set[int] = set()
    for node in range(len(wired.nodes) - 1, -1, -1):
        op, _, _, inputs, count, _, _ = wired.nodes[node]
        if (node, 0) not in used and _is_recast(node, wired):
            recast.add(node)  # bytes of a value are no output beside the value
            continue
        if count > 0 or (operator := schema.find(op)) is None or operator.writes:
            used.update((source, index) for source, index, _ in inputs)
    computed = _computed(wired)
    free = [
        (node, index)
        for node, tensors in enumerate(wired.tensors)
        for index in range(len(tensors))
        if (node, index) not in used and node not in recast
    ]
    local = [
        (node, index)
        for node, index in free
        if computed[node] and wired.tensors[node][index].rank in (-1, rank)
    ]
    return local or [output for output in free if computed[output[0]]] or free


def _is_recast(node: int, wired: Wired) -> bool:
    op = wired.op_of[node]
    inputs = wired.nodes[node][3]
    if op is None or not op.virtual or not inputs or len(wired.tensors[node]) != 1:
        return False
    source, index, _ = inputs[0]
    return wired.tensors[source][index].dtype != wired.tensors[node][0].dtype


def _computed(wired: Wired) -> list[bool]:
    """Whether each node gives something that is computed, or a view of such a thing."""
    computed: list[bool] = []
    for node, (op, _, _, inputs, _, _, _) in enumerate(wired.nodes):
        source = wired.op_of[node]
        if op == VARIABLE:
            computed.append(False)
        elif source is not None and not source.virtual:
            computed.append(True)
        else:
            buffers = {tensor.buffer for tensor in wired.tensors[node]}
            computed.append(
                any(
                    computed[i] and wired.tensors[i][index].buffer in buffers
                    for i, index, _ in inputs
                )
            )
    return computed
