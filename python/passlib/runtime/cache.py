"""A cache whose values are made once, each under a lock of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from passlib.files.fork_lock import ForkLock

_V = TypeVar("_V")


class _Slot(Generic[_V]):
    """The place of one value, which may still be in the making."""

    __slots__ = ("lock", "size", "value")

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.value: _V | None = None
        self.size = 0


class Cache(Generic[_V]):
    """Keeps the values that were used last. Making one delays only those who want the same.

    Parameters
    ----------
    most : int
        Number of values kept.
    most_bytes : int, optional
        Sum of their sizes; the value used last is kept even if it alone is larger.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._slots: OrderedDict[Hashable, _Slot[_V]] = OrderedDict()
        self._lock = ForkLock()

    def get(
        self,
        key: Hashable,
        make: Callable[[], _V],
        *,
        fits: Callable[[_V], bool] = lambda _: True,
        size: Callable[[_V], int] = lambda _: 0,
    ) -> _V:
        """Return the value of a key.

        Parameters
        ----------
        key : hashable
        make : callable
            Makes the value; its exceptions reach every caller that waits for it, and nothing is
            kept.
        fits : callable, optional
            Whether a kept value may still be used; otherwise it is made anew.
        size : callable, optional
            Returns the size of a value in bytes.
        """
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot()
            else:
                self._slots.move_to_end(key)
        with slot.lock:
            value = slot.value
            if value is not None and fits(value):
                return value
            slot.value = None
            try:
                value = make()
            except BaseException:
                self._forget(key, slot)
                raise
            slot.value = value
            slot.size = size(value)
        with self._lock:
            self._shrink()
        return value

    def _forget(self, key: Hashable, slot: _Slot[_V]) -> None:
        with self._lock:
            if self._slots.get(key) is slot:
                del self._slots[key]

    def _shrink(self) -> None:
        total = sum(slot.size for slot in self._slots.values())
        while len(self._slots) > self._most or (
            self._most_bytes is not None and total > self._most_bytes and len(self._slots) > 1
        ):
            total -= self._slots.popitem(last=False)[1].size
