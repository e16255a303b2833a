"""Nodes at which ONNX's inference ends the process where an input has no type.

The rules of onnx 1.23 for these operators follow a null pointer then. An input has no type if an
operator that ONNX does not know computes it, and in some files a nested graph does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.keys import INPUTS_ALSO
from passlib.dialects.onnx.messages import graphs_within

UNTYPED_ENDS: Final = frozenset(
    (("", "EyeLike"), ("", "RegexFullMatch"), ("ai.onnx.ml", "DictVectorizer"),
     ("ai.onnx.ml", "LabelEncoder"), ("ai.onnx.ml", "TreeEnsemble"))
)  # fmt: skip
"""These operators, by domain and name; ``make sweep-untyped`` finds them."""


def untyped_nodes(model: Any, graphs: Sequence[Any]) -> list[tuple[int, int]]:
    """Find the nodes of these operators that take a value whose type is not stated.

    Parameters
    ----------
    model : onnx.ModelProto
        With the types of its values as far as they are known, and functions that do not call
        themselves.
    graphs : sequence of onnx.GraphProto
        Those of the model, in the order of `graphs_within`.

    Returns
    -------
    list of (int, int)
        Number of the graph and of the node in it. Calls of functions that contain one of these
        operators are among them: types inside are not known.
    """
    calls = _calls(model)
    found = [
        (number, place, (node.domain, node.op_type) in calls)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if _ends(node) or (calls and (node.domain, node.op_type) in calls)
    ]
    if not found:
        return []
    typed = _typed(model, graphs)
    return [
        (number, place)
        for number, place, is_call in found
        if is_call or not typed.issuperset(filter(None, graphs[number].node[place].input))
    ]


def _ends(node: Any) -> bool:
    return (schema.plain(node.domain), node.op_type) in UNTYPED_ENDS


def _calls(model: Any) -> set[tuple[str, str]]:
    """Return the functions that contain one of the operators, or call such a function."""
    if not model.functions:
        return set()
    inside = {
        (function.domain, function.name): [
            node for graph in graphs_within(function) for node in graph.node
        ]
        for function in model.functions
    }
    found = {key for key, nodes in inside.items() if any(map(_ends, nodes))}
    callers: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for key, nodes in inside.items():
        for node in nodes:
            callers.setdefault((node.domain, node.op_type), set()).add(key)
    pending = list(found)
    while pending:
        new = callers.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def _typed(model: Any, graphs: Sequence[Any]) -> set[str]:
    """Return the names that have a type in each of the graphs that define them."""
    typed: set[str] = set()
    untyped: set[str] = set()
    for graph in graphs:
        stated = set(_stated(graph))
        if model.ir_version >= INPUTS_ALSO:
            stated.update(tensor.name for tensor in graph.initializer)
            stated.update(tensor.values.name for tensor in graph.sparse_initializer)
        untyped.update(name for name in _defined(graph) if name not in stated)
        typed |= stated
    return typed - untyped


def _stated(graph: Any) -> Iterator[str]:
    for value in (*graph.value_info, *graph.input, *graph.output):
        if value.type.WhichOneof("value") is not None:
            yield value.name


def _defined(graph: Any) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    yield from (name for node in graph.node for name in node.output)
