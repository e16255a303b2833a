"""Errors and warnings about a file, collected until all of it is read."""

from __future__ import annotations

from typing import NoReturn

from passlib.dialects.problem import Problem
from passlib.errors import FormatError, PasslibError, UnsoundFileError, UnsupportedError


class Findings:
    """Collects errors and warnings.

    Attributes
    ----------
    problems : list of Problem
        In the order of detection.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._kinds: list[type[PasslibError]] = []

    def malformed(self, place: str, message: str) -> None:
        """Report a value that is missing or has the wrong type."""
        self._error(FormatError, place, message)

    def unsound(self, place: str, message: str) -> None:
        """Report a contradiction within the network."""
        self._error(UnsoundFileError, place, message)

    def unsupported(self, place: str, message: str) -> None:
        """Report something that passlib does not support."""
        self._error(UnsupportedError, place, message)

    def warn(self, place: str, message: str) -> None:
        """Report something that the original program accepts, but that is hardly intended."""
        self.problems.append(Problem("warning", place, message))

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return bool(self._kinds)

    def fail(self, path: str) -> NoReturn:
        """Raise the first error."""
        first = next(problem for problem in self.problems if problem.severity == "error")
        more = len(self._kinds) - 1
        rest = f" (and {more} more: see passlib.model.validate)" if more else ""
        raise self._kinds[0](f"{path}: {first.place}: {first.message}{rest}")

    def _error(self, kind: type[PasslibError], place: str, message: str) -> None:
        self._kinds.append(kind)
        self.problems.append(Problem("error", place, message))
