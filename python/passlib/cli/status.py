"""Exit codes of commands, and the errors that they stand for."""

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
NOTHING_FAILS = 5


class UsageError(PasslibError):
    """The command line is invalid."""


def status_of(error: BaseException) -> int:
    """Return the exit code of an error.

    Other errors are wrong usage: an unknown pass, a missing file, a model that the command does not
    support.
    """
    cause = error.__cause__ if isinstance(error, PipelineError) else None
    # By name, because only some commands import the workbench.
    if type(cause).__name__ == "ResultsDifferError":
        return DIFFERENT
    if type(error).__name__ == "NothingFailsError":
        return NOTHING_FAILS
    if isinstance(error, (UsageError, UnsupportedError, InputError)):
        return USAGE
    if isinstance(error, (PassError, OperatorError)):
        return FAILED_PASS
    if isinstance(error, (FormatError, GraphError)):
        return UNSOUND
    return USAGE
