"""What a process that ran a pipeline hands back."""

from __future__ import annotations

from dataclasses import dataclass

from passlib.passes.result import StepResult

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """What the process hands back, pickled.

    Attributes
    ----------
    model : str
        Path of the result; empty after an error.
    steps : tuple of StepResult
    errors : tuple of Exception
        The error, its cause, the cause of that, and so on; pickling loses causes.
    """

    model: str
    steps: tuple[StepResult, ...] = ()
    errors: tuple[BaseException, ...] = ()
