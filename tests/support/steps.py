"""The work of a call, counted in steps of Python: the same on every machine, under any load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

_T = TypeVar("_T")


def counted_steps(function: Callable[[], _T]) -> tuple[_T, int]:
    """Return the result of a function and how many lines and calls of Python ran for it.

    What native code does counts as one step a call; bench/growth.py measures that in seconds.
    """
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        result = function()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return result, count
