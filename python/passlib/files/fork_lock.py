"""Locks that a forked child may use."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType


class ForkLock:
    """A reentrant lock that begins anew in a forked child.

    Another thread may have held it when the process forked; that thread does not exist in the
    child, so an ordinary lock would stay locked for ever.
    """

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Make it free, whoever held it."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
