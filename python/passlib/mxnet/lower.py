"""The lowering of MXNet symbols to ONNX, and the sizes that creating operators leave open."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from passlib.errors import GraphError
from passlib.graph.attributes import parse_optional_ints
from passlib.graph.node import Node
from passlib.lowering import Graph, Lowered, Lowerings, TypeSpec, lower_graph
from passlib.lowering.inference import infer_graph
from passlib.lowering.walk import Overriding
from passlib.mxnet.inference.infer import complete, completing
from passlib.mxnet.lowering import table_for
from passlib.mxnet.lowering.libraries import table_with_libraries
from passlib.mxnet.lowering.refused import reason
from passlib.mxnet.lowering.tensors.creation import SIZES_OF
from passlib.mxnet.numpy_mode import leaves_sizes_open, mode_of
from passlib.mxnet.schema.calls import check_nodes


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower a symbol; see `Dialect.lower`."""
    return _lower(graph, inputs, params, table_for, train=train)


def lower_for_file(
    graph: Graph, inputs: Mapping[str, TypeSpec], params: Mapping[str, np.ndarray]
) -> Lowered:
    """Lower a symbol with operators of libraries; see `Dialect.lower_for_file`."""
    return _lower(graph, inputs, params, table_with_libraries, train=False)


def _lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    table: Callable[[Graph], Lowerings],
    *,
    train: bool,
) -> Lowered:
    # A refused operator raises its own reason whatever its attributes are; inference reports
    # mistakes in them.
    check_nodes(node for node in graph.nodes() if reason(node.op) is None)
    names = {node.name for node in graph.nodes() if node.is_variable}
    known = {
        name: TypeSpec(array.dtype, array.shape) for name, array in params.items() if name in names
    }
    with mode_of(graph):
        return lower_graph(
            graph,
            table(graph),
            inputs,
            params,
            train=train,
            complete=complete,
            overriding=open_sizes(graph, {**known, **inputs}, train=train),
            spared=() if train else of_labels(graph),
        )


_LABELLED = frozenset(
    ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput",
     "Softmax", "SoftmaxOutput", "_sparse_LinearRegressionOutput",
     "_sparse_LogisticRegressionOutput", "_sparse_MAERegressionOutput")
)  # fmt: skip
"""Operators whose inputs but the first affect only the gradient."""


def of_labels(graph: Graph) -> set[Node]:
    """Return the nodes that only labels depend on."""
    nodes = graph.nodes()
    needed = {entry.node for entry in graph.entries}
    for node in reversed(nodes):
        if node in needed:
            read = node.inputs[:1] if node.op in _LABELLED else node.inputs
            needed.update(entry.node for entry in read)
    return set(nodes) - needed


_Place: TypeAlias = "tuple[str, int]"
"""A variable and one of its axes."""

_FIRST_STAND_INS: Final = (96, 160)
"""The smallest stand-in of each set: large enough for the windows of most layers."""

_STEP: Final = 64
"""The distance between the stand-ins of one set."""


def open_sizes(graph: Graph, known: Mapping[str, TypeSpec], *, train: bool = False) -> Overriding:
    """Find the sizes that creating operators leave open; see `Dialect.open_sizes`."""
    with mode_of(graph):
        return _open_sizes(graph, known, train=train)


def has_open_sizes(graph: Graph) -> bool:
    """Whether creating operators leave sizes open; see `Dialect.has_open_sizes`."""
    with mode_of(graph):
        return any(leaves_sizes_open(node) for node in graph.nodes())


def _open_sizes(symbol: Graph, known: Mapping[str, TypeSpec], *, train: bool) -> Overriding:
    open_nodes = [node for node in symbol.nodes() if leaves_sizes_open(node)]
    if not open_nodes:
        return {}
    found = dict(_inferred(symbol, known, train=train))
    rest = [node for node in open_nodes if node not in found]
    places = [
        (name, axis)
        for name, spec in known.items()
        for axis, size in enumerate(spec.shape or ())
        if size is None
    ]
    if not rest or not places:
        return found
    stand_ins = [_stand_ins(places, least) for least in _FIRST_STAND_INS]
    try:
        trials = [_inferred(symbol, _closed(known, sizes), train=train) for sizes in stand_ins]
    except GraphError:
        return found  # the sizes stay open, and the node that has them is refused by name
    for node in rest:
        shapes = [parse_optional_ints(trial[node]["shape"]) for trial in trials if node in trial]
        if len(shapes) == len(trials):
            sized = _sized(shapes, stand_ins)
            if sized is not None:
                found[node] = sized
    return found


def _inferred(symbol: Graph, known: Mapping[str, TypeSpec], *, train: bool) -> Overriding:
    found = infer_graph(
        symbol, table_for(symbol), known, completing(symbol), leaves_sizes_open, train=train
    )
    return found.overriding


def _stand_ins(places: Sequence[_Place], least: int) -> dict[_Place, int]:
    return {place: least + _STEP * index for index, place in enumerate(places)}


def _closed(known: Mapping[str, TypeSpec], sizes: Mapping[_Place, int]) -> dict[str, TypeSpec]:
    return {
        name: spec._replace(
            shape=spec.shape
            and tuple(sizes.get((name, axis), size) for axis, size in enumerate(spec.shape))
        )
        for name, spec in known.items()
    }


def _sized(
    shapes: Sequence[Sequence[int | None]], stand_ins: Sequence[Mapping[_Place, int]]
) -> Mapping[str, str] | None:
    """Return the attributes of a node that had these shapes in the trials; None if unexplained."""
    sizes: list[int] = []
    sources: list[_Place] = []
    for found in zip(*shapes, strict=True):
        if len(set(found)) == 1 and found[0] is not None:
            sizes.append(found[0])
            continue
        matching = [
            place
            for place in stand_ins[0]
            if all(trial[place] == size for trial, size in zip(stand_ins, found, strict=True))
        ]
        if not matching:
            return None
        sizes.append(-1)
        sources.append(matching[0])
    return {"shape": str(tuple(sizes)), SIZES_OF: json.dumps(sources)}
