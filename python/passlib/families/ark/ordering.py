"""Orders in which every item comes after those that it needs; a circle is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from passlib.errors import GraphError, listed
from passlib.graph.ordering import stable_order, stuck_items


def ordered(
    needs: Sequence[Iterable[int]], name: Callable[[int], str], rank: Sequence[Any] | None = None
) -> list[int]:
    """Order items so that each comes after those it needs.

    Parameters
    ----------
    needs : sequence of iterable of int
        The items that each item needs.
    name : callable
        Spells an item for the error.
    rank : sequence, optional
        As in `passlib.graph.ordering.stable_order`.

    Raises
    ------
    GraphError
        Items need each other in a circle.
    """
    order = stable_order(needs, rank)
    if len(order) < len(needs):
        raise circle_error(needs, name)
    return order


def circle_error(needs: Sequence[Iterable[int]], name: Callable[[int], str]) -> GraphError:
    """Return the error for items that need each other in a circle."""
    stuck = stuck_items([list(wanted) for wanted in needs])
    return GraphError(f"these need each other in a circle: {listed(list(map(name, stuck)), 4)}")
