"""Generators of random numbers, and their seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays.context import Context, require_host
from passlib.files.fork_lock import ForkLock

_lock = ForkLock()


def seed(seed_state: int, ctx: Context | Any = "all") -> None:
    """Seed the generators that operators of libraries and ``nd.random`` draw from.

    A library has access to 1024 MT19937 generators. With the same seed an operator gets the same
    numbers as in MXNet 1.9.1; the initial state is that after ``seed(0)``. The seed does not
    affect random operators of MXNet itself.

    Parameters
    ----------
    seed_state : int
        Taken modulo 2**32.
    ctx : Context or "all"
        Any name of the host.

    Raises
    ------
    UnsupportedError
        A GPU.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.random.seed(7)
    >>> first = mx.nd.random.uniform(shape=(3,))
    >>> mx.random.seed(7)
    >>> mx.test_utils.same(first, mx.nd.random.uniform(shape=(3,)))
    True
    """
    if ctx != "all":
        require_host(ctx, "random numbers")
    state = int(seed_state) % 2**32
    _core.seed_random(state)
    with _lock:
        _generator().bit_generator.state = np.random.PCG64(state).state


def draw(make: Callable[[np.random.Generator], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Call a function with the NumPy generator of ``nd.random``, one call at a time."""
    with _lock:
        return make(_generator())


@cache
def _generator() -> np.random.Generator:
    # Made when it is needed: numpy.random takes 10 ms to import.
    return np.random.Generator(np.random.PCG64(0))
