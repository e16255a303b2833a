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
    """Return a minimal sublist that fails: without any single item it does not.

    For one guilty item, it takes at most ``2 log2(len(items)) + 1`` calls.

    Parameters
    ----------
    items : sequence
        Assumed to fail as a whole.
    fails : callable
        Whether a sublist, in the order of the list, fails.
    """
    kept = list(items)
    parts = 2
    while len(kept) > 1:
        count = min(parts, len(kept))
        edges = [len(kept) * i // count for i in range(count + 1)]
        chunks = [kept[a:b] for a, b in itertools.pairwise(edges)]
        guilty = next((chunk for chunk in chunks if fails(chunk)), None)
        if guilty is not None:
            kept, parts = guilty, 2
            continue
        # Each of two parts is the complement of the other.
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
