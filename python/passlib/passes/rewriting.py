"""Rules in Python: what a pattern of nodes becomes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import passlib._core as _core
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import register_function
from passlib.passes.match import Match, dtype_code

F = TypeVar("F", bound=Callable[..., Any])


class Patterns:
    """Compiled patterns.

    Parameters
    ----------
    text : str or sequence of str
        One pattern, or several that are searched together.

    Raises
    ------
    PatternError
        One is not well-formed.
    """

    def __init__(self, text: str | Sequence[str]) -> None:
        listed = isinstance(text, Sequence) and not isinstance(text, bytes)
        self.texts = [text] if isinstance(text, str) else list(text) if listed else []
        if not listed or not all(isinstance(each, str) for each in self.texts):
            raise TypeError(
                f"a pattern is text, such as 'y = Relu(x)', or a sequence of texts, not {text!r}"
            )
        self._rules = _core.PatternRules(self.texts)

    def replace(self, graph: Graph, function: Callable[[Match], object]) -> int:
        """Replace matches by what a function returns, until none is left; return their number."""
        made: list[str] = []

        def call(native: _core.PatternMatch) -> None:
            match = Match(native, graph, made)
            match.give(function(match))

        count = self._rules.apply(graph, graph.attributes, _lent(graph), call)
        if made:
            # Parameters of rules that declined, or whose operations were replaced in turn.
            present = {node.name for node in graph.nodes if node.is_variable}
            for name in made:
                if name not in present:
                    del graph.args[name]
        return count

    def find(self, graph: Graph) -> list[_core.FoundPlace]:
        """List the matches: number of the pattern, nodes, values, attributes."""
        return self._rules.find(graph, graph.attributes, _lent(graph))

    def why(self, graph: Graph, node: _core.EditableNode) -> str:
        """Return why no pattern matches with its first result at a node; empty if one does."""
        return self._rules.why(node, graph, graph.attributes, _lent(graph))


def _lent(graph: Graph) -> list[tuple[str, np.ndarray[Any, Any], int]]:
    """Return the arrays of parameters for the matcher, which reads those of one element."""
    lent = []
    for arrays in graph.parameters:
        for name, array in arrays.items():
            code = dtype_code(array.dtype)
            if code is None:  # no library could get it, and no pattern sees it
                continue
            shown = array
            if array.size == 1 and not (array.flags.aligned and array.dtype.isnative):
                shown = np.array(array, array.dtype.newbyteorder("="))
            lent.append((name, shown, code))
    return lent


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

    The function gets a `Match` and returns what replaces the result of the pattern: a value, such
    as that of ``m.op(...)``; a tuple or a dictionary of values for several results; or None, which
    leaves the match as it is. Its keyword-only parameters are the options of the pass, as with
    `graph_pass`. Matches are replaced until none is left, in nested graphs too.

    Parameters
    ----------
    pattern : str or sequence of str
        What to look for, see docs/patterns.md; of several patterns the first that matches.
    name : str, optional
        Name of the pass, by default that of the function.
    dialects : sequence of str
        Families of models that the rule is for, by default all.
    shapes : bool
        Infer shapes and types before the pass runs.
    replace : bool
        Take over the name from another pass. Not needed to define the same function again.
    exact, joins
        As of `graph_pass`.

    Raises
    ------
    PatternError
        The pattern is not well-formed; the message names line and column.
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
    ...     '''Makes Gemm of MatMul and Add.'''
    ...     return m.op("Gemm", m.x, m.w, m.b)
    """
    patterns = Patterns(pattern)

    def decorate(function: F) -> F:
        @functools.wraps(function)  # tracebacks and isolated processes ask for its file
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
            joins=joins,
        )
        return function

    return decorate
