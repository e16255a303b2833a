"""Validation of MXNet models: the symbol, its operators, and the weights next to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import passlib._core as _core
from passlib.dialects.model_checks import (
    check_end,
    check_names,
    check_shapes,
    file_problem,
    unknown_operators,
)
from passlib.dialects.protocol import Dialect, Problem
from passlib.dialects.weights.files import bytes_left, load_parts
from passlib.dialects.weights.params import split_names
from passlib.errors import FormatError, GraphError, PasslibError, listed
from passlib.files.regular import check_whole
from passlib.graph.attributes import blame, parse_optional_ints
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.mxnet import files, schema
from passlib.mxnet.inference.infer import infer
from passlib.mxnet.numpy_mode import mode_of
from passlib.mxnet.reading import read_file
from passlib.mxnet.schema import registry as variables
from passlib.mxnet.schema.calls import check_nodes

_MOST: Final = 50
"""Nodes that are reported for their attributes."""

_SHOWN: Final = 80
"""Characters of an attribute that a message shows."""


def validate(path: Path, dialect: Dialect) -> list[Problem]:
    """Check the files of a model; see `Dialect.validate`.

    An error in the symbol ends the check. Operators of libraries count as unknown until their
    library is loaded. Weights that are missing, unused or of another shape are warnings.
    """
    found = files.find(path)
    try:
        check_whole(found.symbol)
        graph, attributes, _ = read_file(found.symbol)
    except (FormatError, GraphError) as error:
        return [file_problem(found.symbol, error)]
    plain = PlainGraph.of_native(graph, attributes, dialect)
    with mode_of(plain):
        attributed = list(_attributes(plain))
    problems = [*_operators(graph), *attributed]
    if found.params is None:
        return problems
    try:
        named = load_parts(found.params)
        states = variables.variables(graph)[1]
        args, aux = split_names(named, str(found.params), frozenset(states))
        left = bytes_left(found.params)
    except (PasslibError, OSError) as error:
        return [*problems, file_problem(found.params, error)]
    sound = all(problem.severity == "warning" for problem in attributed)
    place = os.fspath(found.params)
    return [*problems, *check_end(place, left), *_weights(place, plain, args, aux, sound)]


def _operators(graph: _core.Graph) -> Iterator[Problem]:
    for found in unknown_operators(
        graph, lambda name: schema.find(name) is not None, lambda: list(schema.names())
    ):
        message = f"MXNet has no operator {found.name!r}"
        if found.nearest is not None:
            yield Problem("error", found.place, f"{message}; did you mean {found.nearest!r}?")
            continue
        message += "; if a library registers it, load the library before"
        yield Problem("warning", found.place, message)


def _attributes(graph: PlainGraph) -> Iterator[Problem]:
    """Report nodes that MXNet refuses for their attributes or number of inputs, the first ones."""
    found = 0
    for node, outer in _nodes_within(graph):
        place = " in ".join((node.name, *reversed(outer))) if outer else node.name
        if node.is_variable:
            if (text := node.attrs.get("__shape__")) is not None and not _is_shape(text):
                yield Problem("warning", place, f"__shape__ is no shape: {text[:_SHOWN]!r}")
                found += 1
        else:
            try:
                check_nodes((node,))
            except GraphError as error:
                yield Problem("error", place, str(error).removeprefix(f"{blame(node)}: "))
                found += 1
        if found == _MOST:
            return


def _nodes_within(graph: PlainGraph) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Iterate over the nodes of a graph, each followed by those of the graphs nested in it.

    The second item names the nodes that a node is nested in, from the outermost.
    """
    pending: list[tuple[Iterator[Node], tuple[str, ...]]] = [(iter(graph.nodes()), ())]
    while pending:
        nodes, outer = pending[-1]
        node = next(nodes, None)
        if node is None:
            pending.pop()
            continue
        yield node, outer
        inner = (*outer, node.name)
        pending.extend((iter(nested.nodes()), inner) for nested in reversed(node.subgraphs))


def _is_shape(text: str) -> bool:
    try:
        parse_optional_ints(text)
    except ValueError:
        return False
    return True


def _weights(
    place: str, graph: PlainGraph, args: dict[str, Any], aux: dict[str, Any], sound: bool
) -> Iterator[Problem]:
    names, states = variables.variables(graph.graph)
    known = variables.parameters_among(graph.graph, set(names))
    parameters = [name for name in names if name in known]
    weights = {**args, **aux}
    yield from check_names(place, weights.keys(), [*parameters, *states], {*names, *states})
    stated = {node.name: _stated(node) for node in graph.nodes() if node.is_variable}
    yield from check_shapes(place, weights, stated)
    misplaced = [name for name in args if name in states] + [n for n in aux if n in {*names}]
    if misplaced:
        text = f"{len(misplaced)} of the {len(weights)} arrays have the prefix of the other kind"
        yield Problem(
            "warning", place, f"{text}, under which MXNet does not find them: {listed(misplaced)}"
        )
    if not sound:
        return
    try:
        infer(graph, {name: weights[name].shape for name in stated if name in weights})
    except PasslibError as error:
        yield Problem("warning", place, f"the shapes do not fit the graph: {error}")


def _stated(node: Node) -> tuple[int | None, ...] | None:
    """Return the shape that a variable states; MXNet writes 0 or -1 for unknown sizes."""
    try:
        sizes = parse_optional_ints(node.attrs.get("__shape__", "None"))
    except ValueError:
        return None
    if not sizes or sizes == (None,):
        return None
    return tuple(size if size is not None and size > 0 else None for size in sizes)
