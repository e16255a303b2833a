"""Looking for patterns without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import passlib._core as _core
from passlib.errors import GraphError
from passlib.library.declared import Declaration
from passlib.library.python import Graph, PythonPass
from passlib.model import Model
from passlib.model.graph import ModelGraph, Request, optimize_graph
from passlib.passes.rewriting import Patterns


@dataclass(frozen=True)
class Found:
    """A place where a pattern matches.

    Attributes
    ----------
    pattern : str
        Its text.
    nodes : tuple of str
        The names of the operations, each after those it takes input from.
    values : dict of str to tuple
        By name in the pattern: node and number of the output of each value. An absent optional
        input has none, a variadic one any number.
    attrs : dict of str to str
        The attributes that the pattern binds.

    Examples
    --------
    >>> import passlib as pl
    >>> (found,) = pl.find(pl.sym.relu(pl.sym.var("x"), name="y"), "relu(v)")
    >>> found.nodes, found.values["v"]
    (('y',), (('x', 0),))
    """

    pattern: str
    nodes: tuple[str, ...]
    values: dict[str, tuple[tuple[str, int], ...]]
    attrs: dict[str, str]


def find(
    model: Model | ModelGraph, pattern: str | Sequence[str], *, shapes: bool = False
) -> list[Found]:
    """List all places where a pattern matches, overlapping ones too.

    Parameters
    ----------
    model : Model or ModelGraph
        A symbol has no weights: nothing in it is a ``param``.
    pattern : str or sequence of str
        See docs/patterns.md.
    shapes : bool
        Infer shapes and types first, for patterns that ask for those of computed values.

    Raises
    ------
    PatternError
        A pattern is not well-formed.

    Examples
    --------
    >>> import passlib as pl
    >>> y = pl.sym.relu(pl.sym.relu(pl.sym.var("x"), name="a"), name="b")
    >>> [found.nodes for found in pl.find(y, "relu(x)")]
    [('a',), ('b',)]
    """
    patterns = Patterns(pattern)
    found: list[Found] = []

    def look(graph: Graph) -> None:
        for rule, nodes, values, attrs in patterns.find(graph):
            places = {name: tuple(entries) for name, entries in values.items()}
            found.append(Found(patterns.texts[rule], tuple(nodes), places, attrs))

    _run(model, look, shapes)
    return found


def why(
    model: Model | ModelGraph, pattern: str | Sequence[str], node: str, *, shapes: bool = False
) -> str | None:
    """Return why a pattern does not match with its first result at a node.

    Parameters
    ----------
    model, pattern, shapes
        As of `find`.
    node : str
        Name of a node, in nested graphs too; of several the one in the outermost graph.

    Returns
    -------
    str or None
        The condition that was not met, of the attempt that came farthest; None if the pattern
        matches there.

    Raises
    ------
    PatternError
        A pattern is not well-formed.
    GraphError
        The graph has no such node.

    Examples
    --------
    >>> import passlib as pl
    >>> y = pl.sym.relu(pl.sym.exp(pl.sym.var("x"), name="a"), name="b")
    >>> print(pl.why(y, "relu(relu(x))", "b"))
    relu is needed, and this is 'a' (exp)
    """
    patterns = Patterns(pattern)
    reasons: list[str] = []

    def look(graph: Graph) -> None:
        graphs: list[_core.EditableGraph] = [graph]
        for each in graphs:
            place = each.find(node)
            if place is not None:
                reasons.append(patterns.why(graph, place))
                return
            graphs += [nested for owner in each.nodes for nested in owner.subgraphs]

    _run(model, look, shapes)
    if not reasons:
        raise GraphError(f"the graph has no node {node!r}")
    return reasons[0] or None


def _run(model: Model | ModelGraph, look: Callable[[Graph], None], shapes: bool) -> None:
    """Show a copy of the model's graph to a function, as to a pass."""
    declaration = Declaration("find", "", (), (), needs_shapes=shapes, library=__name__)
    weights: dict[str, Any] = {}
    symbol = model
    if isinstance(model, Model):
        symbol = model.symbol
        weights = {"args": dict(model.args), "aux": dict(model.aux)}
    assert isinstance(symbol, ModelGraph)
    backend = PythonPass(declaration, look, f"{__name__}.find")
    optimize_graph(symbol, Request(backend, **weights))
