"""Accesses to the same memory without a defined order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

import numpy as np

from passlib.families.ark.tensors import Box, Tensor, overlap

K = TypeVar("K", bound=Hashable)


class Budget:
    """Steps that a search may take, since a file must not take quadratic time."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def spent(self) -> bool:
        """Whether more steps were taken than there were."""
        return self._left < 0

    def take(self, steps: int) -> None:
        """Take steps."""
        self._left -= steps


def overlapping(tensors: Mapping[K, Tensor], budget: Budget) -> dict[K, list[K]]:
    """Find for each tensor those that share bytes with it, itself included.

    The budget pays for each pair whose intervals meet; once it is spent, the result is incomplete.
    """
    found: dict[K, list[K]] = {key: [key] for key in tensors}
    buffers: defaultdict[int, list[K]] = defaultdict(list)
    for key, tensor in tensors.items():
        buffers[tensor.buffer].append(key)
    for keys in buffers.values():
        for left, right in _meeting(keys, _intervals([tensors[key] for key in keys])):
            budget.take(1)
            if budget.spent:
                return found
            if overlap(tensors[left], tensors[right]):
                found[left].append(right)
                found[right].append(left)
    return found


def _intervals(tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Return intervals that meet wherever tensors of a buffer overlap.

    Boxes of one array are compared along the axis on which they start at the most places, other
    tensors by their spans of bytes.
    """
    first = tensors[0]
    if all(t.box.strides == first.box.strides and t.item_size == first.item_size for t in tensors):
        starts = [{t.box.offsets[axis] for t in tensors} for axis in range(len(first.shape))]
        axis = max(range(len(starts)), key=lambda a: len(starts[a]))
        return [(t.box.offsets[axis], t.box.offsets[axis] + t.shape[axis]) for t in tensors]
    spans = [(t.box.span(), t.item_size) for t in tensors]
    return [(start * size, end * size) for (start, end), size in spans]


def _meeting(keys: Sequence[K], intervals: Sequence[tuple[int, int]]) -> Iterator[tuple[K, K]]:
    """Yield the pairs of keys whose intervals meet."""
    active: list[int] = []
    for current in sorted(range(len(keys)), key=lambda i: intervals[i]):
        start = intervals[current][0]
        active = [other for other in active if intervals[other][1] > start]
        for other in active:
            yield keys[other], keys[current]
        active.append(current)


_KEPT_SEARCHES = 4

_MOST_CELLS = 1 << 24
"""Numbers in the table of chains; a model has few chains, however long."""


class Paths:
    """The order among items, each of which needs earlier ones.

    The items are divided into chains, in each of which every item needs the one before it. A table
    holds how far along each chain an item reaches back, so that a question takes one look. With too
    many chains for a table, an item's needs are searched from the latest on, as far as questions
    go. ``needs`` has the earlier items that each item needs; ``budget`` pays for searches.
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


_MOST_STEPS = 500_000
"""Comparisons of accesses, after which the search stops; models need few for each op."""


class Access(NamedTuple):
    """The tensors that one op uses, and the positions of the ops that must run before it."""

    reads: Sequence[Tensor]
    writes: Sequence[Tensor]
    results: Sequence[Tensor]
    needs: Sequence[int]


class Hazard(NamedTuple):
    """Two ops that touch the same memory in an order that matters.

    The second one writes, or reads data that was overwritten: ``stale`` if it reads a tensor that
    the first one has overwritten; otherwise the two have no defined order.
    """

    first: int
    second: int
    buffer: int
    stale: bool


class Found(NamedTuple):
    """The hazards, and the first op that was not checked because there were too many accesses."""

    hazards: list[Hazard]
    unchecked: int | None


_Region = tuple[int, Box, str]
"""Buffer, box and element type of the accesses that are compared as one."""


def find_hazards(ops: Sequence[Access], most_steps: int = _MOST_STEPS) -> Found:
    """Find the hazards among ops, each after those that it needs, in at most so many comparisons.

    Virtual ops have neither reads nor writes.
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
