"""Nested graphs in a reduction: they take the place of their nodes, or lose nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passlib.dialects.onnx.attributes import CAPTURED, FORMAL, OUTER
from passlib.errors import PasslibError
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.workbench.delta import smallest
from passlib.workbench.reduction.search import Inputs, Search, changed, with_nodes


def with_inlined(search: Search, model: Model, inputs: Inputs) -> Model | None:
    """Return the model with a nested graph in the place of its node, if it still fails.

    Of If that is the branch taken on these inputs, or else the other one; of Loop one round.

    Parameters
    ----------
    search : Search
    model : Model
    inputs : mapping of str to array
    """
    nodes = [node for node in model.symbol.nodes() if node.subgraphs and FORMAL in node.attrs]
    if not nodes:
        return None
    computed = search.values_of(model, inputs)
    known = {name: np.asarray(array) for name, array in {**model.args, **inputs}.items()}
    for node in nodes:
        slots = {"If": 1, "Loop": 2}.get(node.op, 0)
        values = [
            known.get(entry.node.name)
            if entry.node.is_variable
            else computed.get((entry.node.name, entry.index))
            for entry in node.inputs[:slots]
        ]
        for bound in _bound(model, node, values):
            try:
                candidate = bound.optimize_for("resolveIf", skip_infer=True)
            except PasslibError:
                continue
            if len(_nested_in(candidate.symbol)) < len(_nested_in(model.symbol)) and (
                search.changed_fails(candidate, inputs)
            ):
                return candidate
    return None


def _bound(model: Model, node: Node, values: Sequence[Any]) -> Iterator[Model]:
    """Iterate over the models with a condition, or one round, as constants."""
    known = [
        (slot, value)
        for slot, value in enumerate(values)
        if isinstance(value, np.ndarray) and value.size == 1
    ]
    if not known:
        return
    for is_other in (False, True) if node.op == "If" else (False,):
        given = list(node.inputs)
        weights: dict[str, Any] = {}
        for slot, value in known:
            name = f"{node.name}_fixed{slot}"
            is_count = value.dtype != np.bool_
            weights[name] = np.asarray(np.minimum(value, 1) if is_count else value ^ is_other)
            given[slot] = Entry(Node(VARIABLE, name, {}, num_outputs=1))
        yield with_nodes(model, {node: changed(node, given, node.control_deps)}, weights)


def with_smaller_nested(search: Search, model: Model, inputs: Inputs) -> Model:
    """Return the model with fewer nodes in the nested graphs that it has.

    A node that is left out hands its first input on; what does not run then is not taken.

    Parameters
    ----------
    search : Search
    model : Model
    inputs : mapping of str to array
    """
    for node in [node for node in model.symbol.nodes() if FORMAL in node.attrs]:
        name = node.name
        for number in range(len(node.subgraphs)):
            model = _with_smaller(search, model, inputs, (name, number))
    return model


def _with_smaller(search: Search, model: Model, inputs: Inputs, place: tuple[str, int]) -> Model:
    name, number = place
    node = next(each for each in model.symbol.nodes() if each.name == name)
    body: ModelGraph = node.subgraphs[number]
    inner = [each for each in _walk(body) if not each.is_variable]

    def candidate(kept: Sequence[Node]) -> Model:
        cut = _cut(body, set(inner) - set(kept))
        graphs = [*node.subgraphs[:number], cut, *node.subgraphs[number + 1 :]]
        return with_nodes(model, {node: _compact(node, graphs)})

    def fails(kept: list[Node]) -> bool:
        try:
            return search.changed_fails(candidate(kept), inputs)
        except PasslibError:
            return False

    kept = smallest(inner, fails)
    return candidate(kept) if len(kept) < len(inner) else model


def _cut(body: ModelGraph, gone: set[Node]) -> ModelGraph:
    """Return a nested graph without some of its nodes, those nested deeper included."""
    made: dict[Node, Node] = {}
    instead: dict[Node, Entry] = {}

    def source(entry: Entry) -> Entry:
        while entry.node in instead:
            entry = instead[entry.node]
        return entry._replace(node=made[entry.node])

    for node in body.nodes():
        if node in gone and node.inputs and node.num_outputs == 1:
            instead[node] = node.inputs[0]
            continue
        needed = [made[dep] for dep in node.control_deps if dep in made]
        new = changed(node, [source(entry) for entry in node.inputs], needed)
        cut = [_cut(graph, gone) for graph in node.subgraphs]
        made[node] = _compact(new, cut) if cut else new
    return body.with_entries([source(entry) for entry in body.entries])


def _compact(node: Node, graphs: Sequence[ModelGraph]) -> Node:
    """Return a node with other nested graphs, and as inputs what these capture."""
    if FORMAL not in node.attrs:
        return node
    formal = int(node.attrs[FORMAL])
    inner = [each for graph in graphs for each in graph.nodes() if OUTER in each.attrs]
    captured = sorted({place for each in inner if (place := int(each.attrs[OUTER])) >= formal})
    places = {old: formal + new for new, old in enumerate(captured)}
    inputs = [*node.inputs[:formal], *(node.inputs[old] for old in captured)]
    return changed(
        node,
        inputs,
        node.control_deps,
        attrs={**node.attrs, CAPTURED: str(len(captured))},
        subgraphs=[_renumbered(graph, places) for graph in graphs],
    )


def _renumbered(graph: ModelGraph, places: Mapping[int, int]) -> ModelGraph:
    """Return a nested graph whose variables stand for other inputs of the enclosing node."""
    made: dict[Node, Node] = {}
    for node in graph.nodes():
        attrs = dict(node.attrs)
        if OUTER in attrs:
            attrs[OUTER] = str(places.get(int(attrs[OUTER]), int(attrs[OUTER])))
        inputs = [entry._replace(node=made[entry.node]) for entry in node.inputs]
        made[node] = changed(node, inputs, [made[dep] for dep in node.control_deps], attrs=attrs)
    return graph.with_entries([entry._replace(node=made[entry.node]) for entry in graph.entries])


def _nested_in(symbol: ModelGraph) -> list[Node]:
    return [node for node in _walk(symbol) if node.subgraphs]


def _walk(symbol: ModelGraph) -> Iterator[Node]:
    """Iterate over the nodes of a graph and of those nested in it."""
    pending = [symbol]
    while pending:
        for node in pending.pop().nodes():
            yield node
            pending += node.subgraphs
