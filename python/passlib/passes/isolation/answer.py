"""What a process of its own hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What the process hands back, pickled.

    Attributes
    ----------
    value : object
        The result; None after an error.
    errors : tuple of Exception
        The error, its cause, the cause of that, and so on; pickling loses causes.
    """

    value: Any = None
    errors: tuple[BaseException, ...] = ()
