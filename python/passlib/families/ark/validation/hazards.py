"""Accesses to the same memory without a defined order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from passlib.families.ark.tensors import Box, Tensor
from passlib.families.ark.validation.paths import Paths
from passlib.families.ark.validation.regions import Budget, overlapping

_MOST_STEPS = 500_000
"""Comparisons of accesses, after which the search stops; models need few for each op."""


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


class Found(NamedTuple):
    """The result of `find_hazards`.

    Attributes
    ----------
    hazards : list of Hazard
    unchecked : int or None
        Position of the first op that was not checked, because there were too many accesses to
        compare; None if all were.
    """

    hazards: list[Hazard]
    unchecked: int | None


_Region = tuple[int, Box, str]
"""Buffer, box and element type of the accesses that are compared as one."""


def find_hazards(ops: Sequence[Access], most_steps: int = _MOST_STEPS) -> Found:
    """Find the hazards among ops, in their order.

    Parameters
    ----------
    ops : sequence of Access
        Each after those that it needs. Virtual ops have neither reads nor writes.
    most_steps : int
        Comparisons after which the search stops.
    """
    budget = Budget(most_steps)
    search = _Search(ops, budget)
    hazards: list[Hazard] = []
    for position in range(len(ops)):
        found = search.hazards_of(position)
        if budget.spent:
            return Found(hazards, position)
        hazards += found
    return Found(hazards, None)


class _Search:
    """The accesses so far, by region: the last write, and the reads since."""

    def __init__(self, ops: Sequence[Access], budget: Budget) -> None:
        self._ops = ops
        self._budget = budget
        self._paths = Paths([op.needs for op in ops], budget)
        tensors = {_region(t): t for op in ops for t in (*op.reads, *op.writes)}
        self._meeting = overlapping(tensors, budget)
        self._makers = {
            tensor.id: i for i, op in enumerate(ops) for tensor in op.results if op.writes
        }
        self._reads: defaultdict[_Region, list[int]] = defaultdict(list)
        self._writes: dict[_Region, int] = {}

    def hazards_of(self, position: int) -> list[Hazard]:
        """Compare the accesses of an op with those before it, then add them."""
        found: dict[tuple[int, bool], Hazard] = {}
        op = self._ops[position]
        for tensor, writing in [*((t, False) for t in op.reads), *((t, True) for t in op.writes)]:
            region = _region(tensor)
            for other, wrote in self._before(region, writing=writing):
                if other == position:
                    continue
                made = self._makers.get(tensor.id, -1)
                if not self._paths.leads(other, position):
                    hazard = Hazard(other, position, tensor.buffer, stale=False)
                elif wrote and not writing and 0 <= made < other and self._paths.leads(made, other):
                    hazard = Hazard(other, position, tensor.buffer, stale=True)
                else:
                    continue
                found.setdefault((other, hazard.stale), hazard)
            if writing:
                self._reads.pop(region, None)
                self._writes[region] = position
            else:
                self._reads[region].append(position)
        return list(found.values())

    def _before(self, region: _Region, *, writing: bool) -> Iterator[tuple[int, bool]]:
        """Yield the earlier accesses to overlapping memory, latest first, and whether they wrote.

        Those before the last write to the same region were compared with that write.
        """
        since = self._writes.get(region, 0)
        found = []
        for other in self._meeting[region]:
            self._budget.take(1)
            if self._writes.get(other, -1) >= since:
                found.append((self._writes[other], True))
            for position in reversed(self._reads.get(other, ()) if writing else ()):
                self._budget.take(1)
                if position < since or self._budget.spent:
                    break
                found.append((position, False))
        yield from sorted(found, reverse=True)


def _region(tensor: Tensor) -> _Region:
    return tensor.buffer, tensor.box, tensor.dtype
