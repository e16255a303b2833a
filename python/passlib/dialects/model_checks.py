"""Checks of a whole model that a dialect's reader does not make: its operators and its weights."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import passlib._core as _core
from passlib.dialects.protocol import Problem
from passlib.errors import listed
from passlib.graph.node import VARIABLE

_SIMILAR: Final = 0.8
_LONGEST: Final = 64
_MOST: Final = 50
"""Names of operators that are compared with the known ones; each takes a few milliseconds."""

_DIGITS: Final = re.compile(r"\d+")


def file_problem(path: Path, error: Exception) -> Problem:
    """Report an error with the file as its place, which the message then need not repeat."""
    place = os.fspath(path)
    return Problem("error", place, str(error).removeprefix(f"{place}: "))


class UnknownOperator(NamedTuple):
    """An operator that is not known.

    Attributes
    ----------
    name : str
    node : str
        The first node that has it.
    uses : int
        How many nodes of that graph have it.
    nearest : str or None
        The known operator whose name it may be a misspelling of.
    """

    name: str
    node: str
    uses: int
    nearest: str | None

    @property
    def place(self) -> str:
        """The nodes concerned."""
        return self.node + (f" and {self.uses - 1} more" if self.uses > 1 else "")


def unknown_operators(
    graph: _core.Graph, known: Callable[[str], bool], names: Callable[[], Collection[str]]
) -> Iterator[UnknownOperator]:
    """Find the operators of a graph, and of those nested in it, that are not known.

    ``known``: whether there is an operator of this name. ``names``: lists all known operators.
    """
    reported: set[str] = set()
    pending = [graph]
    while pending:
        current = pending.pop()
        operators = current.operators()
        unknown = [
            op for op in operators if op != VARIABLE and op not in reported and not known(op)
        ]
        if unknown:
            first: dict[str, str] = {}
            for node in current.nodes():
                first.setdefault(node.op, node.name)
            for op in unknown:
                nearest = _nearest(op, names()) if len(reported) < _MOST else None
                reported.add(op)
                yield UnknownOperator(op, first[op], operators[op], nearest)
        for *_, subgraphs in current.nodes_with(set(operators)):
            pending.extend(subgraphs)


def _nearest(op: str, names: Collection[str]) -> str | None:
    """Return the known name that an operator misspells; numbers in names are never misspelled."""
    if len(op) > _LONGEST:
        return None
    from difflib import get_close_matches  # which only messages need

    found = get_close_matches(op, names, 1, _SIMILAR)
    if not found or _DIGITS.sub("", found[0]) == _DIGITS.sub("", op):
        return None
    return found[0]


def check_end(place: str, left: int) -> Iterator[Problem]:
    """Report bytes of a weight file after the end of its content.

    ``place``: the weight file. ``left``: their number.
    """
    if left:
        yield Problem("warning", place, f"the last {left} bytes belong to no array and are ignored")


def check_names(
    place: str, weights: Collection[str], parameters: Collection[str], variables: Collection[str]
) -> Iterator[Problem]:
    """Report parameters without weights, and weights without variable.

    Parameters
    ----------
    place : str
        The weight file.
    weights : collection of str
        Names in it.
    parameters : collection of str
        Variables that need weights.
    variables : collection of str
        All variables.
    """
    missing = [name for name in parameters if name not in weights]
    if missing:
        text = f"{len(missing)} of the {len(parameters)} parameters are missing"
        yield Problem("warning", place, f"{text}: {listed(missing)}")
    unused = [name for name in weights if name not in variables]
    if unused:
        text = f"{len(unused)} of the {len(weights)} arrays belong to no variable"
        yield Problem("warning", place, f"{text}: {listed(unused)}")


def check_shapes(
    place: str, weights: Mapping[str, Any], stated: Mapping[str, tuple[int | None, ...] | None]
) -> Iterator[Problem]:
    """Report weights whose shape differs from the one that the graph states.

    ``place``: the weight file. ``stated``: shapes by variable; unknown sizes are None.
    """
    for name, array in weights.items():
        shape = stated.get(name)
        if shape is None:
            continue
        fits = len(shape) == len(array.shape) and all(
            size is None or size == there for size, there in zip(shape, array.shape, strict=True)
        )
        if not fits:
            sizes = ", ".join("?" if size is None else str(size) for size in shape)
            message = f"{name!r} has the shape {tuple(array.shape)}, the graph states ({sizes})"
            yield Problem("warning", place, message)


def misfit(weights: Mapping[str, Any], stated: Mapping[str, tuple[int | None, ...] | None]) -> str:
    """Summarize the problems of `check_shapes` in one sentence; empty if there are none.

    ``stated``: shapes by variable; unknown sizes are None.
    """
    found = [problem.message for problem in check_shapes("", weights, stated)]
    if not found:
        return ""
    return f"{len(found)} of {len(weights)} have another shape: {listed(found, 3)}"
