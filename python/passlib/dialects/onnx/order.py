"""An order of nodes in which each comes after its inputs."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passlib._core import NodeTuple

__all__ = ["file_order"]


def file_order(nodes: Sequence[NodeTuple], places: Mapping[int, int]) -> Sequence[int]:
    """Order nodes so that inputs and control dependencies come first, otherwise as in the file.

    The present order stays where it is such an order. Libraries that were built with MXNet's own
    lib_api give nodes back in an order of their own, so the file has to say which it was.

    Parameters
    ----------
    nodes
        As `_core.Graph` gives them.
    places : mapping of int to int
        The number in the file of each node that stands for one of it. New nodes come directly
        behind what they need.

    Returns
    -------
    sequence of int
        Positions in ``nodes``.
    """
    known = [places[position] for position in range(len(nodes)) if position in places]
    if known == sorted(known) and all(
        all(entry[0] < position for entry in node[3]) and all(dep < position for dep in node[5])
        for position, node in enumerate(nodes)
    ):
        return range(len(nodes))
    waiting = [len(node[3]) + len(node[5]) for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for position, node in enumerate(nodes):
        for entry in node[3]:
            users[entry[0]].append(position)
        for dep in node[5]:
            users[dep].append(position)
    rank = [places.get(position, -1) for position in range(len(nodes))]
    ready = [(rank[position], position) for position, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        behind, position = heapq.heappop(ready)
        order.append(position)
        for user in users[position]:
            if user not in places:
                rank[user] = max(rank[user], behind)
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (rank[user], user))
    return order
