"""What a low room gets from a high one when somebody asks for it.

The root of the package hands in who provides it, so that no room names one above it, and nothing
is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable

_providers: dict[str, Callable[[], object]] = {}


def hand_in(what: str, provide: Callable[[], object]) -> None:
    """State who provides something.

    Parameters
    ----------
    what : str
        What is provided, in words.
    provide : callable
        Registers it with the room that demands it. Calls after the first have no effect.
    """
    _providers[what] = provide


def demand(what: str) -> None:
    """Have something provided now.

    Raises
    ------
    KeyError
        Nobody provides it.
    """
    _providers[what]()
