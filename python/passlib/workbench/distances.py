"""Conditions that a run of a model meets or not, and how far it is from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from passlib.graph.node import Entry, Node

Value = tuple[Node, int]
Seen = Mapping[Value, Any]
"""Intermediate values of a run."""


@dataclass
class Goal:
    """A condition that a run meets or not.

    Attributes
    ----------
    subject, state : str
        The node, and what no run shows of it: ``state subject`` is a sentence.
    reads : tuple of Entry
        The values that it looks at.
    distance : function
        Of these values; 0 or less if they meet the condition, else how far they are from it.
    applies : function, optional
        Of the type of the first value, whether there is anything to show.
    """

    subject: str
    state: str
    reads: tuple[Entry, ...]
    distance: Callable[..., float]
    applies: Callable[[np.dtype[Any]], bool] | None = None

    def of(self, seen: Seen) -> float:
        """Return the distance of a run; infinite if a value is missing or empty."""
        values = [seen.get((each.node, each.index)) for each in self.reads]
        if any(value is None for value in values):
            return np.inf
        arrays = [np.asarray(value) for value in values]
        if any(array.size == 0 or array.dtype.kind not in "biufV" for array in arrays):
            return np.inf
        if self.applies is not None and not self.applies(arrays[0].dtype):
            return 0.0
        with np.errstate(all="ignore"):
            found = self.distance(*(_real(array) for array in arrays))
        return float(found) if np.isfinite(found) else np.inf


def _real(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(array, np.float64).view(np.ndarray)


def above(limit: float) -> Callable[[Any], float]:
    """Return the distance of values of which one element should be above a limit."""
    return lambda x: 0.0 if np.any(x > limit) else float(limit - _most(x)) + 1e-9


def below(limit: float) -> Callable[[Any], float]:
    """Return the distance of values of which one element should be below a limit."""
    return lambda x: 0.0 if np.any(x < limit) else float(_least(x) - limit) + 1e-9


def _most(x: Any) -> Any:
    return np.max(x, initial=-np.inf, where=~np.isnan(x))


def _least(x: Any) -> Any:
    return np.min(x, initial=np.inf, where=~np.isnan(x))


def truth(wanted: bool) -> Callable[[Any], float]:
    """Return the distance of values of which one element should be true, or false."""
    return lambda x: 0.0 if np.any((x != 0) == wanted) else 1.0


def gap_above(a: Any, b: Any) -> float:
    """Return how far the first operand is from being larger somewhere."""
    return above(0.0)(a - b)


def gap_below(a: Any, b: Any) -> float:
    """Return how far the first operand is from being smaller somewhere."""
    return below(0.0)(a - b)


def meets(a: Any, b: Any) -> float:
    """Return how far two operands are from being equal somewhere."""
    return float(_least(np.abs(a - b)))


def parts(a: Any, b: Any) -> float:
    """Return 0 if two operands are different somewhere."""
    return 0.0 if np.any(a != b) else 1.0


def least_at(a: Any, b: Any) -> float:
    """Return how far the first operand is from being larger or equal somewhere."""
    return 0.0 if np.any(a >= b) else float(-_most(a - b))


def most_at(a: Any, b: Any) -> float:
    """Return how far the first operand is from being smaller or equal somewhere."""
    return 0.0 if np.any(a <= b) else float(_least(a - b))


def reached(condition: Callable[..., Any]) -> Callable[..., float]:
    """Return the distance of values of which one element should meet a condition."""
    return lambda *values: 0.0 if np.any(condition(*values)) else 1.0


def nearest(gaps: Callable[..., Any]) -> Callable[..., float]:
    """Return the distance of values of which one element should have no gap."""
    return lambda *values: float(_least(gaps(*values)))


def exceeds(a: Any, *others: Any) -> float:
    """Return how far the first of several operands is from being the largest somewhere."""
    return gap_above(a, np.max(np.broadcast_arrays(*others), axis=0))


def falls_below(a: Any, *others: Any) -> float:
    """Return how far the first of several operands is from being the smallest somewhere."""
    return gap_below(a, np.min(np.broadcast_arrays(*others), axis=0))
