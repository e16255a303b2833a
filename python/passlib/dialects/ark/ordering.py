"""Orders in which a consumer never comes before its producers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from passlib.dialects.ark.document import Document
from passlib.dialects.ark.operators import FileOp
from passlib.errors import GraphError, UnsoundFileError

__all__ = ["order_units", "stable_order"]


def stable_order(
    count: int,
    needs: Sequence[Iterable[int]],
    name: Callable[[int], str],
    priority: Sequence[Any] | None = None,
) -> list[int]:
    """Order items so that each comes after those it needs, and otherwise stays where it is.

    Parameters
    ----------
    count : int
    needs : sequence of iterable of int
        What each item needs.
    name : callable
        Names an item in the error.
    priority : sequence, optional
        What comes first where the needs leave it open; by default the position.

    Raises
    ------
    GraphError
        Items need each other in a circle.
    """
    rank = priority if priority is not None else range(count)
    waiting = [0] * count
    users: list[list[int]] = [[] for _ in range(count)]
    for item, wanted in enumerate(needs):
        for other in set(wanted):
            waiting[item] += 1
            users[other].append(item)
    ready = [(rank[item], item) for item in range(count) if waiting[item] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, item = heapq.heappop(ready)
        order.append(item)
        for user in users[item]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (rank[user], user))
    if len(order) < count:
        stuck = [name(item) for item in range(count) if waiting[item] > 0]
        shown = ", ".join(stuck[:4]) + (", ..." if len(stuck) > 4 else "")
        raise GraphError(f"these need each other in a circle, or what does: {shown}")
    return order


def order_units(document: Document, ops: list[FileOp]) -> list[FileOp]:
    """Order the ops so that nodes come after their producers; ops of a node stay together.

    Raises
    ------
    UnsoundFileError
        Nodes need each other in a circle, two have one Id, or a producer does not exist.
    """
    position: dict[int, int] = {}
    for number, unit in enumerate(document.units):
        if position.setdefault(unit["Id"], number) != number:
            raise UnsoundFileError(f"Nodes[{number}].Id: two nodes have the Id {unit['Id']}")
    makers = {tensor.id: op.place.unit for op in ops for tensor in op.results}
    needs: list[set[int]] = [set() for _ in document.units]
    for number, unit in enumerate(document.units):
        for i, producer in enumerate(unit["ProducerNodeIds"]):
            if producer not in position:
                raise UnsoundFileError(
                    f"Nodes[{number}].ProducerNodeIds[{i}]: there is no node {producer}"
                )
            needs[number].add(position[producer])
    for op in ops:
        own = op.place.unit
        needs[own].update(
            maker
            for tensor in (*op.reads, *op.writes)
            if (maker := makers.get(tensor.id, own)) != own
        )
    if all(need < number for number, wanted in enumerate(needs) for need in wanted):
        return ops
    try:
        order = stable_order(len(needs), needs, lambda n: f"Nodes[{n}]")
    except GraphError as error:
        raise UnsoundFileError(str(error)) from error
    by_unit: list[list[FileOp]] = [[] for _ in document.units]
    for op in ops:
        by_unit[op.place.unit].append(op)
    return [op for number in order for op in by_unit[number]]
