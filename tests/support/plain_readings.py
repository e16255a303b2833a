"""What the native readers of the JSON dialects make of a text, next to what Python's checks say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passlib._core as _core
from passlib.errors import PasslibError

__all__ = ["both_outcomes", "is_plain"]


def both_outcomes(
    reader: str, read: Callable[[], tuple[_core.Graph, Any]]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Call a function with a native reader, and without it.

    Parameters
    ----------
    reader : str
        Name of the reader in ``_core``.
    read : callable
        Returns a graph, and anything else that must be the same.

    Returns
    -------
    outcomes : tuple
        Two that are to be equal: nodes, heads and the rest, or the error.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, reader, lambda *_: None)
        by_python = _outcome(read)
    return _outcome(read), by_python


def is_plain(reader: str, read: Callable[[], object]) -> bool:
    """Whether a native reader accepts the file that a function reads."""
    native = getattr(_core, reader)
    results = []

    def note(*arguments: Any) -> Any:
        results.append(native(*arguments))
        return results[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, reader, note)
        read()
    return results[0] is not None


def _outcome(read: Callable[[], tuple[_core.Graph, Any]]) -> tuple[Any, ...]:
    try:
        graph, rest = read()
    except PasslibError as error:
        return type(error), str(error)
    # Subgraphs are objects without equality, and no native reader accepts any.
    nodes = [(*node[:-1], len(node.subgraphs)) for node in graph.nodes()]
    return nodes, graph.heads(), rest
