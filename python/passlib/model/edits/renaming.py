"""Graphs whose inputs, weights, nodes and outputs have other names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import passlib._core as _core
from passlib.arrays.dtypes import as_mapping
from passlib.dialects import Dialect
from passlib.errors import GraphError, did_you_mean
from passlib.graph.node import VARIABLE
from passlib.model.graph import ModelGraph, graph_of


def renamed(symbol: ModelGraph, dialect: Dialect, names: Mapping[str, str]) -> ModelGraph:
    """Return a graph with other names; all that has one of the old names gets the new one.

    Parameters
    ----------
    symbol : ModelGraph
    dialect : Dialect
        That of the symbol.
    names : mapping of str to str
        New names by old names.

    Raises
    ------
    TypeError
        Names are no strings.
    GraphError
        Nothing has an old name, or a new one is taken.
    """
    if names is None:
        raise TypeError("names is None, but must be a dictionary of new names by old ones")
    new = _checked(as_mapping("names", names, "'new name'"))
    graph = symbol.graph
    nodes = graph.nodes()
    present = symbol.list_outputs()
    outputs = [new.get(name, name) for name in present] if dialect.names_outputs else []
    known = {node.name for node in nodes}.union(present if dialect.names_outputs else ())
    for name in new:
        if name not in known:
            raise GraphError(_unknown(name, symbol, known))
    made = [node._replace(name=new.get(node.name, node.name)) for node in nodes]
    _check_free(nodes, made, new)
    attributes = dict(symbol.attributes)
    result = _core.Graph.build(made, graph.heads())
    result.check()
    if outputs != present and dialect.names_outputs:
        _check_outputs(outputs, made, graph.heads())
    if dialect.names_outputs:
        attributes |= dialect.with_output_names(result, outputs)
    return graph_of(result, attributes, dialect.name)


def _checked(names: Mapping[Any, Any]) -> dict[str, str]:
    for old, new in names.items():
        if not (isinstance(old, str) and _is_name(new)):
            raise TypeError(f"names has {old!r}: {new!r}, but must have names by names")
    return {old: new for old, new in names.items() if old != new}


def _is_name(new: Any) -> bool:
    """Whether something can be a name in a file: not empty, and Unicode without halves."""
    if not isinstance(new, str):
        return False
    halves = any("\ud800" <= character <= "\udfff" for character in new)
    return new != "" and "\0" not in new and not halves


def _unknown(name: str, symbol: ModelGraph, known: set[str]) -> str:
    outputs = zip(symbol.list_outputs(), symbol.entries, strict=True)
    for output, entry in outputs:
        if output == name:
            return (
                f"the output {name!r} has its name from the node that computes it; rename the "
                f"node {entry.node.name!r}"
            )
    return f"the model has no input, weight, node or output {name!r}" + did_you_mean(name, known)


def _check_free(
    before: list[_core.NodeTuple], after: list[_core.NodeTuple], new: Mapping[str, str]
) -> None:
    """Refuse a new name that a node or variable has that is not renamed, or two get."""
    earlier = Counter(node.name for node in before)
    count = Counter(node.name for node in after)
    for old, name in new.items():
        if old in earlier and count[name] > earlier[old]:
            raise GraphError(f"{old!r} cannot be renamed to {name!r}: that name is taken")


def _check_outputs(
    outputs: list[str], nodes: list[_core.NodeTuple], heads: list[tuple[int, int, int]]
) -> None:
    variables = {node.name for node in nodes if node.op == VARIABLE}
    seen: dict[str, tuple[int, int]] = {}
    for name, (position, index, _) in zip(outputs, heads, strict=True):
        other = seen.setdefault(name, (position, index))
        is_own = nodes[position].op == VARIABLE and nodes[position].name == name
        if other != (position, index) or (name in variables and not is_own):
            raise GraphError(f"an output cannot be renamed to {name!r}: that name is taken")
