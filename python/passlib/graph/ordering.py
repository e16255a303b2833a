"""Orders in which every item comes after those that it needs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any


def stable_order(
    needs: Sequence[Iterable[int]], rank: Sequence[Any] | None = None, *, first: Any = -1
) -> list[int]:
    """Order items so that each comes after those it needs, and otherwise by rank.

    Linear in items and needs, but for the logarithm of the queue's length. Items that need each
    other in a circle, and all that need them, are missing in the result: see `stuck_items`.

    Parameters
    ----------
    needs : sequence of iterable of int
        The items that each item needs.
    rank : sequence, optional
        Where an item would stand if it needed nothing, by default its number. An item of rank None
        comes directly after the last one that it needs.
    first : object
        The rank of items without rank that need nothing.
    """
    count = len(needs)
    own = list(range(count)) if rank is None else list(rank)
    inherits = [place is None for place in own]
    own = [first if place is None else place for place in own]
    waiting = [0] * count
    users: list[list[int]] = [[] for _ in range(count)]
    for item, wanted in enumerate(needs):
        for other in set(wanted):
            waiting[item] += 1
            users[other].append(item)
    ready = [(own[item], item) for item in range(count) if waiting[item] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        place, item = heapq.heappop(ready)
        order.append(item)
        for user in users[item]:
            if inherits[user]:
                own[user] = max(own[user], place)
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (own[user], user))
    return order


def depth_first_order(
    needs: Sequence[Sequence[int]], wish: Iterable[int] | None = None
) -> list[int]:
    """Order items so that each comes after those it needs, and these directly before it.

    Where `stable_order` puts an item as early as its rank allows, this puts it before the first
    item that needs it; otherwise in the order of ``wish``, by default that of the numbers. Linear
    in items and needs, which have no circles.
    """
    done = [False] * len(needs)
    order = []
    for first in range(len(needs)) if wish is None else wish:
        stack = [first]
        while stack:
            item = stack[-1]
            if done[item]:
                stack.pop()
                continue
            waiting = [other for other in needs[item] if not done[other]]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            done[item] = True
            order.append(item)
            stack.pop()
    return order


def stuck_items(needs: Sequence[Sequence[int]]) -> list[int]:
    """Return the items that are in circles, or on a path from one circle to another."""
    users: list[list[int]] = [[] for _ in needs]
    for item, wanted in enumerate(needs):
        for other in wanted:
            users[other].append(item)
    leading = set(_unreached(users, needs))
    return [item for item in _unreached(needs, users) if item in leading]


def _unreached(needs: Sequence[Sequence[int]], users: Sequence[Sequence[int]]) -> list[int]:
    """Return the items that no order can reach: those in circles and those that need them."""
    waiting = [len(wanted) for wanted in needs]
    ready = [item for item, count in enumerate(waiting) if count == 0]
    while ready:
        for user in users[ready.pop()]:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return [item for item, count in enumerate(waiting) if count]
