"""Where random numbers come from, and how to get the same ones again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from passlib import _core
from passlib.arrays.context import Context, require_host

__all__ = ["draw", "seed"]

_lock = threading.Lock()
_generator = np.random.Generator(np.random.PCG64(0))


def seed(seed_state: int, ctx: Context | Any = "all") -> None:
    """Start the generators anew that operators of libraries and ``nd.random`` draw from.

    A library sees 1024 of them, MT19937. After the same seed an operator gets the numbers that it
    gets in MXNet 1.9.1; before any it is as after ``seed(0)``. Random operators of MXNet itself
    are not concerned.

    Parameters
    ----------
    seed_state : int
        Taken modulo 2**32.
    ctx : Context or "all"
        The host, whichever way it is named.

    Raises
    ------
    UnsupportedError
        A GPU.
    """
    if ctx != "all":
        require_host(ctx, "random numbers")
    state = int(seed_state) % 2**32
    _core.seed_random(state)
    with _lock:
        _generator.bit_generator.state = np.random.PCG64(state).state


def draw(make: Callable[[np.random.Generator], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Let a function draw from NumPy's generator that ``nd.random`` uses, one at a time."""
    with _lock:
        return make(_generator)
