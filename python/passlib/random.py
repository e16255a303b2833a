"""The seed of the random numbers that operators of libraries draw."""

from __future__ import annotations

from typing import Any

from passlib import _core
from passlib.context import Context, require_host

__all__ = ["seed"]


def seed(seed_state: int, ctx: Context | Any = "all") -> None:
    """Start the generators that operators of libraries draw from anew.

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
    _core.seed_random(int(seed_state) % 2**32)
