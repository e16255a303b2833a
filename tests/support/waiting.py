"""Running what a mistake would let wait for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def within_seconds(action: Callable[[], Any]) -> Any:
    """Return what an action returns or raises, which must take less than 30 s."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(action())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert outcome, "it waits"
    return outcome[0]
