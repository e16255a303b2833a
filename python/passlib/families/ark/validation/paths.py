"""Whether one op runs before another, for any two of them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from passlib.families.ark.validation.regions import Budget

_KEPT_SEARCHES = 4

_MOST_CELLS = 1 << 24
"""Numbers in the table of chains; a model has few chains, however long."""


class Paths:
    """The order among items, each of which needs earlier ones.

    The items are divided into chains, in each of which every item needs the one before it. A table
    holds how far along each chain an item reaches back, so that a question takes one look. With
    too many chains for a table, an item's needs are searched from the latest on, as far as
    questions go.

    Parameters
    ----------
    needs : sequence of sequence of int
        The earlier items that each item needs.
    budget : Budget
        Pays for searches.
    """

    def __init__(self, needs: Sequence[Sequence[int]], budget: Budget) -> None:
        self._needs = needs
        self._budget = budget
        self._chain, self._place, count = _chains(needs)
        self._searches: dict[int, tuple[set[int], list[int]]] = {}
        self._reach: np.ndarray | None = None
        if count * len(needs) <= _MOST_CELLS:
            self._reach = np.full((len(needs), count), -1, np.int32)
            for item, wanted in enumerate(needs):
                row = self._reach[item]
                for need in wanted:
                    np.maximum(row, self._reach[need], out=row)
                row[self._chain[item]] = self._place[item]

    def leads(self, earlier: int, later: int) -> bool:
        """Whether ``later`` needs ``earlier``, directly or not; true once the budget is spent."""
        if self._reach is not None:
            return bool(self._reach[later, self._chain[earlier]] >= self._place[earlier])
        search = self._searches.pop(later, None) or ({later}, [-later])
        while len(self._searches) >= _KEPT_SEARCHES:
            self._searches.pop(next(iter(self._searches)))
        self._searches[later] = search
        seen, pending = search
        while pending and -pending[0] > earlier and not self._budget.spent:
            for need in self._needs[-heappop(pending)]:
                self._budget.take(1)
                if need not in seen:
                    seen.add(need)
                    heappush(pending, -need)
        return earlier in seen or self._budget.spent


def _chains(needs: Sequence[Sequence[int]]) -> tuple[list[int], list[int], int]:
    """Divide items into chains; return the chain of each, its place in it, and their number."""
    chain: list[int] = []
    place: list[int] = []
    last: list[int] = []
    for item, wanted in enumerate(needs):
        before = max((need for need in wanted if last[chain[need]] == need), default=None)
        if before is None:
            chain.append(len(last))
            place.append(0)
            last.append(item)
        else:
            chain.append(chain[before])
            place.append(place[before] + 1)
            last[chain[before]] = item
    return chain, place, len(last)
