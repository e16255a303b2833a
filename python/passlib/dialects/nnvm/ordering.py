"""Orders of nodes in which what a node needs comes before it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["sort_places", "stuck_places"]


def sort_places(needs: Sequence[Sequence[int]], wish: Sequence[int] | None = None) -> list[int]:
    """Put places in an order in which those that one needs come before it.

    Parameters
    ----------
    needs : sequence of sequence of int
        Must be free of cycles.
    wish : sequence of int, optional
        The order to keep as far as that allows, by default that of the numbers.
    """
    done = [False] * len(needs)
    order = []
    for first in range(len(needs)) if wish is None else wish:
        stack = [first]
        while stack:
            place = stack[-1]
            if done[place]:
                stack.pop()
                continue
            waiting = [other for other in needs[place] if not done[other]]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            done[place] = True
            order.append(place)
            stack.pop()
    return order


def stuck_places(needs: Sequence[Sequence[int]]) -> list[int]:
    """Find the nodes that are in cycles, or on a way from one cycle to another."""
    users: list[list[int]] = [[] for _ in needs]
    for place, needed in enumerate(needs):
        for other in needed:
            users[other].append(place)
    leading = set(_unreached(users, needs))
    return [place for place in _unreached(needs, users) if place in leading]


def _unreached(needs: Sequence[Sequence[int]], users: Sequence[Sequence[int]]) -> list[int]:
    """Find the nodes that no order can reach: those in cycles and what waits for them."""
    waiting = [len(needed) for needed in needs]
    ready = [place for place, count in enumerate(waiting) if count == 0]
    while ready:
        for user in users[ready.pop()]:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return [place for place, count in enumerate(waiting) if count]
