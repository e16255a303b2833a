"""A part of a graph, between some of its values, as a graph."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from passlib.arrays import dtypes
from passlib.dialects import Dialect, infer
from passlib.errors import GraphError, UnsupportedError, did_you_mean, listed
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.graph.plain import with_sources
from passlib.lowering import TypeSpec
from passlib.model.graph import ModelGraph


def extracted(
    symbol: ModelGraph,
    dialect: Dialect,
    inputs: Sequence[str] | str | None,
    outputs: Sequence[str] | str | None,
    weights: Mapping[str, Any],
) -> ModelGraph:
    """Return the part of a graph that computes some values from others.

    Parameters
    ----------
    symbol : ModelGraph
    dialect : Dialect
        That of the symbol.
    inputs : sequence of str, optional
        Names of values that become inputs. By default the part has the inputs that it needs.
    outputs : sequence of str, optional
        Names of values, by default those of the outputs.
    weights : mapping of str to array
        Of the model.

    Raises
    ------
    TypeError
        Names are no strings.
    GraphError
        There is no value of a name, or the outputs need an input that is not among ``inputs``.
    """
    internals = symbol.get_internals()
    places = dict(zip(internals.list_outputs(), internals.entries, strict=True))
    own = dict(zip(symbol.list_outputs(), symbol.entries, strict=True))
    wanted = list(own) if outputs is None else _names("outputs", outputs)
    known = {**places, **own}
    entries = [_found(symbol, known, "outputs", name) for name in wanted]
    if not entries:
        raise GraphError("outputs is empty, and a model has at least one output")
    given = () if inputs is None else inputs
    cuts = {name: _found(symbol, known, "inputs", name) for name in _names("inputs", given)}
    sources = _sources(symbol, cuts, weights)
    # The names of the outputs are those of their values, as for any choice of outputs.
    made = symbol.with_entries(with_sources(entries, sources))
    if inputs is not None:
        _check_complete(made, dialect, cuts, weights)
    return made


def _names(what: str, given: Sequence[str] | str) -> list[str]:
    if not isinstance(given, (str, Sequence)):
        raise TypeError(f"{what} is {given!r}, but must be a sequence of names of values")
    names = [given] if isinstance(given, str) else list(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"{what} has {wrong[0]!r}, but must be names of values")
    return list(dict.fromkeys(names))


def _found(symbol: ModelGraph, places: Mapping[str, Entry], what: str, name: str) -> Entry:
    entry = places.get(name)
    if entry is None:
        owner = _owner_of_nested(symbol, name)
        if owner is not None:
            raise GraphError(
                f"{what}: the value {name!r} is inside a nested graph of node {owner.name!r} "
                f"({owner.op}), of which no part can be taken; take that node's outputs"
            )
        hint = did_you_mean(name, places) or f"; its values are {listed(list(places))}"
        raise GraphError(f"{what}: the model has no value {name!r}{hint}")
    return entry


def _owner_of_nested(symbol: ModelGraph, name: str) -> Node | None:
    """Return the node of the outermost graph that has a value of this name in a nested graph."""
    for node in symbol.nodes():
        pending = list(node.subgraphs)
        while pending:
            nested = pending.pop().get_internals()
            # Names of values depend on what the whole model's attributes say of its file.
            if name in symbol.with_entries(nested.entries).list_outputs():
                return node
            pending += [graph for inner in nested.nodes() for graph in inner.subgraphs]
    return None


def _sources(
    symbol: ModelGraph, cuts: Mapping[str, Entry], weights: Mapping[str, Any]
) -> dict[tuple[Node, int], Node]:
    """Return the variables that take the place of values that are no variables yet."""
    inner = {name: entry for name, entry in cuts.items() if not entry.node.is_variable}
    if not inner:
        return {}
    types = _types(symbol, weights)
    sources = {}
    for name, entry in inner.items():
        specs = types.get(entry.node, ())
        spec = specs[entry.index] if entry.index < len(specs) else TypeSpec(None, None)
        sources[entry.node, entry.index] = Node(VARIABLE, name, _attributes(spec), num_outputs=1)
    return sources


def _types(symbol: ModelGraph, weights: Mapping[str, Any]) -> Mapping[Node, tuple[TypeSpec, ...]]:
    if importlib.util.find_spec("onnx") is None:  # which inference needs
        return {}
    shapes = {name: array.shape for name, array in weights.items()}
    return infer(symbol, shapes, {name: array.dtype for name, array in weights.items()}).outputs


def _attributes(spec: TypeSpec) -> dict[str, str]:
    """Return the attributes that state the type of a new variable, as far as it is known."""
    stated = {}
    if spec.shape is not None:
        sizes = ("-1" if size is None else str(size) for size in spec.shape)
        stated["__shape__"] = f"({', '.join(sizes)}{',' * (len(spec.shape) == 1)})"
    if spec.dtype is not None:
        with suppress(UnsupportedError):  # strings: no pass sees arrays of them
            stated["__dtype__"] = str(dtypes.code(spec.dtype))
    return stated


def _check_complete(
    made: ModelGraph, dialect: Dialect, cuts: Collection[str], weights: Mapping[str, Any]
) -> None:
    needed = [name for name in dialect.data_inputs(made.graph) if name not in weights]
    missing = [name for name in needed if name not in cuts]
    if missing:
        raise GraphError(
            f"the outputs also need {listed([repr(name) for name in missing], 4)}; add that to "
            f"inputs, which has {listed([repr(name) for name in cuts], 4)}"
        )
