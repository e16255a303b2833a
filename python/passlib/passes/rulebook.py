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

Fold = Callable[[Graph, Sequence[_core.EditableNode]], bool]
"""Replaces operators on constants by their results; returns whether any was."""


def apply_rules(
    book: _core.RuleBook,
    graph: Graph,
    chosen: Sequence[int],
    fold: Fold,
    kept_names: Collection[str] = (),
) -> list[int]:
    """Apply rules, by their numbers, until none applies; return how often each did.

    Operators with the names in kept_names stay.

    Raises `RuntimeError` if rules go in a circle, or one contradicts what is known of a result.
    """
    return new_edit(graph, fold).apply(book, list(chosen), assumptions(), set(kept_names))


def new_edit(graph: Graph, fold: Fold | None = None) -> _core.Edit:
    """Return the core's view of a graph with its weights, whose changes reach ``graph.args``."""

    def settle(
        made: Mapping[str, tuple[np.ndarray[Any, Any], str]],
        gone: Sequence[str],
        folds: Sequence[_core.EditableNode],
    ) -> _core.Lent | None:
        for name in gone:
            graph.args.pop(name, None)
        for name, (array, kind) in made.items():  # which may have names of these
            graph.args[name] = array.view(dtypes.without_code(kind)) if kind else array
        return graph.lent() if folds and fold is not None and fold(graph, folds) else None

    return _core.Edit(graph, graph.attributes, lent_arrays(graph), file_of(graph), allocate, settle)


def assumptions() -> _core.Assumptions:
    """Return what the passes that run now assume about open dimensions."""
    return _core.Assumptions(**(kept() or {}))


def file_of(graph: Graph) -> _core.OnnxFile | None:
    """Return the file that a graph came from, which states types."""
    try:
        return document_of(graph.own_attributes).file
    except UnsupportedError:
        return None


def allocate(shape: list[int], code: int) -> np.ndarray[Any, Any]:
    """Return an array for a new parameter, whose dtype is that of a code."""
    return np.zeros(shape, dtypes.from_code(code))
