"""Regions of buffers that share bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from passlib.families.ark.tensors import Tensor, overlap

K = TypeVar("K", bound=Hashable)


class Budget:
    """Steps that a search may take, since a file must not take quadratic time.

    Parameters
    ----------
    steps : int
    """

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

    Parameters
    ----------
    tensors : mapping
    budget : Budget
        Pays for each pair whose intervals meet; once it is spent, the result is incomplete.
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

    Boxes of one array are told apart along the axis on which they start at the most places, other
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
