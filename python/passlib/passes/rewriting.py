"""Patterns in Python: rules that rewrite matches, and searches without changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import passlib._core as _core
from passlib.errors import short_repr
from passlib.library.declared import Declaration, Joins
from passlib.library.python import Graph, PythonPass
from passlib.model.graph import ModelGraph, Request, optimize_graph
from passlib.model.loading import AnyModel, as_model
from passlib.passes.function import register_function
from passlib.passes.match import Match

F = TypeVar("F", bound=Callable[..., Any])


class Patterns:
    """Compiled patterns, which are searched together.

    Raises
    ------
    PatternError
        A pattern is malformed.
    """

    def __init__(self, text: str | Sequence[str]) -> None:
        listed = isinstance(text, Sequence) and not isinstance(text, bytes)
        self.texts = [text] if isinstance(text, str) else list(text) if listed else []
        if not listed or not all(isinstance(each, str) for each in self.texts):
            raise TypeError(
                "a pattern must be a string, such as 'y = Relu(x)', or a sequence of strings, "
                f"not {text!r}"
            )
        self._rules = _core.PatternRules(self.texts)

    def replace(self, graph: Graph, function: Callable[[Match], object]) -> int:
        """Replace matches until none is left; return their number."""
        made: list[str] = []

        def call(native: _core.PatternMatch) -> None:
            match = Match(native, graph, made)
            match.give(function(match))

        count = self._rules.apply(graph, graph.attributes, lent_arrays(graph), call)
        if made:
            # Drop parameters of declined rules and of replaced operations.
            present = {node.name for node in graph.nodes if node.is_variable}
            for name in made:
                if name not in present:
                    del graph.args[name]
        return count

    def find(self, graph: Graph) -> list[_core.FoundPlace]:
        """Return the matches: index of the pattern, nodes, values and attributes."""
        return self._rules.find(graph, graph.attributes, lent_arrays(graph))

    def names(self, graph: Graph) -> set[str]:
        """Return the names of the nodes of all matches."""
        return self._rules.names(graph, graph.attributes, lent_arrays(graph))

    def why(self, graph: Graph, node: _core.EditableNode) -> str:
        """Return why no pattern matches at a node; an empty text if one does."""
        return self._rules.why(node, graph, graph.attributes, lent_arrays(graph))


def lent_arrays(graph: Graph) -> list[tuple[str, np.ndarray[Any, Any], int]]:
    """Return the parameters for the matcher, and end `Graph.edit`, to which they are lent."""
    graph.edit = None
    return graph.lent()


def rewrite(
    pattern: str | Sequence[str],
    *,
    name: str | None = None,
    dialects: Sequence[str] = (),
    shapes: bool = False,
    replace: bool = False,
    exact: bool = False,
    joins: Joins | None = None,
) -> Callable[[F], F]:
    """Register a rule as a pass, which ``optimize_for`` runs by its name.

    The function receives a `Match` and returns the replacement of the pattern's result: a value,
    such as the result of ``m.op(...)``; a tuple or dictionary of values for several results; or
    None to keep the match. Its keyword-only parameters are the options of the pass, as in
    `graph_pass`. Matches are replaced until none is left, in nested graphs too, and by
    `Model.optimize_for` in the bodies of local functions of ONNX models.

    Parameters
    ----------
    pattern : str or sequence of str
        See docs/patterns.md; of several patterns, the first match counts.
    name : str, optional
        Name of the pass (default: the name of the function).
    dialects : sequence of str
        Dialects that the rule supports (default: all).
    shapes : bool
        Infer shapes and dtypes before the pass runs.
    replace : bool
        Replace another pass of this name. Not needed to redefine the same function.
    exact, joins
        See `graph_pass`.

    Raises
    ------
    PatternError
        The pattern is malformed; the message contains line and column.
    TypeError
        The function does not take a match, or a parameter cannot be an option.
    UnsupportedError
        A dialect is unknown.
    PasslibError
        The name is taken.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.rewrite("y = Add(MatMul(x, w:param[rank=2]), b:param[rank=1])", dialects=["onnx"])
    ... def fuse_gemm(m: pl.Match) -> object:
    ...     '''Replace MatMul and Add with Gemm.'''
    ...     return m.op("Gemm", m.x, m.w, m.b)
    """
    patterns = Patterns(pattern)

    def decorate(function: F) -> F:
        @functools.wraps(function)  # keep the source file for tracebacks and isolation
        def body(graph: Graph, **options: object) -> None:
            patterns.replace(graph, lambda match: function(match, **options))

        register_function(
            function,
            body,
            "match",
            name,
            replace=replace,
            dialects=dialects,
            needs_shapes=shapes,
            exact=exact,
            enters_functions=True,
            joins=joins,
        )
        return function

    return decorate


@short_repr
@dataclass(frozen=True)
class Found:
    """A match of `find`.

    Attributes
    ----------
    nodes : tuple of str
        The names of the matched nodes in topological order.
    values : dict of str to tuple
        For each name in the pattern, the node and output index of each value: none for an absent
        optional input, any number for a variadic input.
    attrs : dict of str to str
        The attributes bound by the pattern.

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
    model: AnyModel | ModelGraph, pattern: str | Sequence[str], *, shapes: bool = False
) -> list[Found]:
    """Return all matches of a pattern, including overlapping ones.

    Parameters
    ----------
    model : Model, path-like or ModelGraph
        A graph without weights has no ``param``.
    pattern : str or sequence of str
        See docs/patterns.md.
    shapes : bool
        Infer shapes and dtypes first, for patterns with conditions on computed values.

    Raises
    ------
    PatternError
        A pattern is malformed.

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

    run_on_copy(model, look, shapes)
    return found


def run_on_copy(model: AnyModel | ModelGraph, look: Callable[[Graph], None], shapes: bool) -> None:
    """Run a function as a pass on a copy of the graph."""
    declaration = Declaration("find", "", (), (), needs_shapes=shapes, library=__name__)
    weights: dict[str, Any] = {}
    if isinstance(model, ModelGraph):
        symbol = model
    else:
        loaded = as_model(model)
        symbol = loaded.symbol
        weights = {"args": dict(loaded.args), "aux": dict(loaded.aux)}
    backend = PythonPass(declaration, look, f"{__name__}.find")
    optimize_graph(symbol, Request(backend, **weights))
