"""Accesses to the same memory without a defined order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from passlib.dialects.ark.tensors import Tensor, overlap

__all__ = ["Access", "Hazard", "find_hazards"]

_MOST_STEPS = 300_000
"""Steps of all searches together, after which the rest is assumed ordered. Models need few."""


class Access(NamedTuple):
    """The tensors that one op uses.

    Attributes
    ----------
    reads, writes, results : sequence of Tensor
    needs : sequence of int
        Positions of the ops that must run before it.
    """

    reads: Sequence[Tensor]
    writes: Sequence[Tensor]
    results: Sequence[Tensor]
    needs: Sequence[int]


class Hazard(NamedTuple):
    """Two ops that touch the same memory in an order that matters.

    Attributes
    ----------
    first, second : int
        Positions of the ops; the second one writes, or reads data that was overwritten.
    buffer : int
    stale : bool
        Whether the second one reads a tensor that the first one has overwritten; otherwise the two
        have no defined order.
    """

    first: int
    second: int
    buffer: int
    stale: bool


def find_hazards(ops: Sequence[Access]) -> list[Hazard]:
    """Find the hazards among ops, in their order.

    Parameters
    ----------
    ops : sequence of Access
        Each after those that it needs. Virtual ops have neither reads nor writes.
    """
    hazards: list[Hazard] = []
    search = _Search(ops)
    makers = {tensor.id: i for i, op in enumerate(ops) for tensor in op.results if op.writes}
    touched: defaultdict[int, list[tuple[int, Tensor, bool]]] = defaultdict(list)
    for position, op in enumerate(ops):
        found: dict[tuple[int, bool], Hazard] = {}
        for tensor, writing in [*((t, False) for t in op.reads), *((t, True) for t in op.writes)]:
            earlier = touched[tensor.buffer]
            for other, region, wrote in reversed(earlier):
                search.steps += 1
                if search.steps > _MOST_STEPS:
                    return hazards
                if other == position or not (writing or wrote) or not overlap(tensor, region):
                    continue
                made = makers.get(tensor.id, -1)
                if not search.reaches(position, other):
                    hazard = Hazard(other, position, tensor.buffer, stale=False)
                elif wrote and not writing and 0 <= made < other and search.reaches(other, made):
                    hazard = Hazard(other, position, tensor.buffer, stale=True)
                else:
                    hazard = None
                if hazard is not None:
                    found.setdefault((other, hazard.stale), hazard)
                if wrote and region.box == tensor.box and region.dtype == tensor.dtype:
                    break
            search.steps += len(earlier) if writing else 0
            if writing:
                touched[tensor.buffer] = [
                    entry
                    for entry in earlier
                    if entry[1].box != tensor.box or entry[1].dtype != tensor.dtype
                ]
            touched[tensor.buffer].append((position, tensor, writing))
        hazards += found.values()
    return hazards


class _Search:
    """Path searches with a common limit on steps."""

    def __init__(self, ops: Sequence[Access]) -> None:
        self._ops = ops
        self.steps = 0

    def reaches(self, later: int, earlier: int) -> bool:
        """Whether one op needs another, directly or not; true if the search exceeds the limit."""
        pending, seen = [later], {later}
        while pending:
            for need in self._ops[pending.pop()].needs:
                self.steps += 1
                if need == earlier or self.steps > _MOST_STEPS:
                    return True
                if need > earlier and need not in seen:
                    seen.add(need)
                    pending.append(need)
        return False
