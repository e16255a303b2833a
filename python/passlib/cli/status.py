"""Exit codes, and the errors that they stand for."""

from __future__ import annotations

from passlib.errors import (
    FormatError,
    GraphError,
    InputError,
    OperatorError,
    PassError,
    PasslibError,
    PipelineError,
    UnsupportedError,
)

FINE = 0
USAGE = 1
FAILED_PASS = 2
UNSOUND = 3
DIFFERENT = 4


class UsageError(PasslibError):
    """The command was called in a way that it does not have."""


def status_of(error: BaseException) -> int:
    """Return the exit code that an error stands for.

    What fits no other code is wrong usage: an unknown pass, a missing file, a model that this
    command cannot work on.
    """
    cause = error.__cause__ if isinstance(error, PipelineError) else None
    # By name, because what compares numbers is imported by the commands that do.
    if type(cause).__name__ == "ResultsDifferError":
        return DIFFERENT
    if isinstance(error, (UsageError, UnsupportedError, InputError)):
        return USAGE
    if isinstance(error, (PassError, OperatorError)):
        return FAILED_PASS
    if isinstance(error, (FormatError, GraphError)):
        return UNSOUND
    return USAGE
