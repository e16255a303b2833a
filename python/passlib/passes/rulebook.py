"""Books of rules at work on a graph, by the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.onnx.reading import document_of
from passlib.errors import UnsupportedError
from passlib.library.python import Graph
from passlib.passes.rewriting import lent_arrays
from passlib.passes.simplification import kept

BOOKS = Path(__file__).resolve().parent.parent / "rules"
"""The folder of the rules that come with passlib."""

_MOST_ROUNDS = 16

Fold = Callable[[Graph, Sequence[_core.EditableNode]], bool]
"""Replaces operators on constants by their results; returns whether any was."""

Remove = Callable[[Graph, Sequence[_core.EditableNode]], None]
"""Removes operators that nothing needs, and those that only they needed."""


def apply_rules(
    book: _core.RuleBook,
    graph: Graph,
    chosen: Sequence[int],
    fold: Fold,
    remove: Remove,
    kept_names: Collection[str] = (),
) -> list[int]:
    """Apply rules, by their numbers, until none applies; return how often each did.

    Operators with the names in kept_names stay.

    Raises `RuntimeError` if rules go in a circle, or one contradicts what is known of a result.
    """
    numbers, file = list(chosen), file_of(graph)
    assumptions = _core.Assumptions(**(kept() or {}))
    counts: list[int] = []
    for _ in range(_MOST_ROUNDS):
        lent = lent_arrays(graph)
        each, made, gone, folds, left = book.apply(
            graph, graph.attributes, lent, numbers, file, assumptions, set(kept_names), allocate
        )
        exchange(graph, gone, made)
        remove(graph, left)
        counts = [before + now for before, now in zip(counts or [0] * len(each), each, strict=True)]
        nodes = {node.name: node for node in graph.nodes} if folds else {}
        # Simplification folds those in nested graphs, on its own.
        own = [node for node in folds if nodes.get(node.name) == node]
        if not own or not fold(graph, own):
            break
    return counts


def exchange(graph: Graph, gone: Sequence[str], made: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Remove parameters, by names, and set new ones, which may have names of these."""
    for name in gone:
        graph.args.pop(name, None)
    for name, array in made.items():
        graph.args[name] = array


def file_of(graph: Graph) -> _core.OnnxFile | None:
    """Return the file that a graph came from, which states types."""
    try:
        return document_of(graph.own_attributes).file
    except UnsupportedError:
        return None


def allocate(shape: list[int], code: int) -> np.ndarray[Any, Any]:
    """Return an array for a new parameter, whose dtype is that of a code."""
    return np.zeros(shape, dtypes.from_code(code))
