"""Delta debugging: the smallest part of a list that still fails.

Source: A. Zeller and R. Hildebrandt, Simplifying and isolating failure-inducing input, IEEE
Transactions on Software Engineering 28 (2002), algorithm ddmin.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def smallest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Return a part of a list that fails, of which no single item can be left out.

    Where one item alone is guilty, it takes at most ``2 log2(len(items)) + 1`` calls.

    Parameters
    ----------
    items : sequence
        Fails as a whole, which is not tested.
    fails : callable
        Whether a part, in the order of the list, fails.
    """
    kept = list(items)
    parts = 2
    while len(kept) > 1:
        chunks = _chunks(kept, min(parts, len(kept)))
        guilty = next((chunk for chunk in chunks if fails(chunk)), None)
        if guilty is not None:
            kept, parts = guilty, 2
            continue
        # With two parts, each is what the other one leaves.
        rests = [] if len(chunks) == 2 else range(len(chunks))
        for i in rests:
            rest = [item for j, chunk in enumerate(chunks) if j != i for item in chunk]
            if fails(rest):
                kept, parts = rest, max(len(chunks) - 1, 2)
                break
        else:
            if len(chunks) == len(kept):
                break
            parts = 2 * len(chunks)
    return kept


def _chunks(items: list[T], count: int) -> list[list[T]]:
    edges = [len(items) * i // count for i in range(count + 1)]
    return [items[a:b] for a, b in itertools.pairwise(edges)]


def first_failing(count: int, fails: Callable[[int], bool]) -> int:
    """Return the first of some states that fails, by bisection.

    Parameters
    ----------
    count : int
        Number of states; the last one fails, which is not tested.
    fails : callable
        Whether a state fails. Those after a failing one are taken to fail as well.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle + 1
    return low
