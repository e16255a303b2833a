"""Sizes that creating operators leave open, such as the batch of a recurrent layer's first state.

MXNet infers them from the other nodes. Where they are the size of an input that stays open itself,
inference with two sets of stand-in sizes shows which one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from passlib.errors import GraphError
from passlib.graph.attributes import parse_optional_ints
from passlib.lowering import Graph, TypeSpec
from passlib.lowering.inference import infer_graph
from passlib.lowering.walk import Overriding
from passlib.mxnet.inference.infer import completing
from passlib.mxnet.lowering import table_for
from passlib.mxnet.lowering.tensors.creation import SIZES_OF
from passlib.mxnet.numpy_mode import leaves_sizes_open, mode_of

_Place: TypeAlias = "tuple[str, int]"
"""A variable and one of its axes."""

_FIRST_STAND_INS: Final = (96, 160)
"""The smallest stand-in of each set: large enough for the windows of most layers."""

_STEP: Final = 64
"""The distance between the stand-ins of one set."""


def open_sizes(symbol: Graph, known: Mapping[str, TypeSpec], *, train: bool) -> Overriding:
    """Find the sizes that creating operators leave open; see `Dialect.open_sizes`."""
    with mode_of(symbol):
        return _open_sizes(symbol, known, train=train)


def has_open_sizes(symbol: Graph) -> bool:
    """Whether creating operators leave sizes open; see `Dialect.has_open_sizes`."""
    with mode_of(symbol):
        return any(leaves_sizes_open(node) for node in symbol.nodes())


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
