"""The exceptions of passlib: one tree, so that one ``except`` catches them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "FormatError",
    "GraphError",
    "InternalError",
    "LoadError",
    "OperatorError",
    "PassError",
    "PassResultError",
    "PasslibError",
    "PatternError",
    "PipelineError",
    "UnsoundFileError",
    "UnsupportedError",
    "did_you_mean",
    "listed",
]


class PasslibError(Exception):
    """Base of every error that passlib raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Some constructors have required keywords, which Exception's own form would not pass.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[PasslibError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> PasslibError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class LoadError(PasslibError):
    """A library could not be loaded, failed to initialize, or may not be called any more."""


class FormatError(PasslibError):
    """A file or text does not follow its format; the message names the place.

    Attributes
    ----------
    offset, line, column : int or None
        Place of the fault: byte offset from 0, line and column from 1; None if the
        format has no such notion.
    """

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.line = line
        self.column = column

    def within(self, place: object) -> FormatError:
        """Return the same error with the file or member that it occurred in before its message."""
        return type(self)(
            f"{place}: {self}", offset=self.offset, line=self.line, column=self.column
        )


class PatternError(FormatError):
    """The text of a pattern is not well-formed; ``line`` and ``column`` are the place."""


class GraphError(PasslibError):
    """A graph is not sound; the message names the nodes concerned."""


class PassError(PasslibError):
    """A pass failed; the message names the pass and its library, and includes the library's own.

    Attributes
    ----------
    messages : tuple of str
        Messages that the library reported through ``MX_ERROR_MSG`` during this one call.
    """

    def __init__(self, message: str, *, messages: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.messages = messages


class PipelineError(PassError):
    """A step of a pipeline failed; the cause is the error of the step.

    Attributes
    ----------
    step : str
        The step with its options.
    model : Model
        The model that the step failed on.
    """

    def __init__(
        self, message: str, *, step: str, model: Any, messages: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, messages=messages)
        self.step = step
        self.model = model


class OperatorError(PasslibError):
    """A library's operator failed, or broke the rules for operators.

    Attributes
    ----------
    operator : str
    library : str
        Path of the library that registered it.
    node : str
        Name of the node; empty if the operator was called without one.
    messages : tuple of str
        Messages that the library reported through ``MX_ERROR_MSG`` during this one call.
    """

    def __init__(
        self,
        message: str,
        *,
        operator: str,
        library: str,
        node: str = "",
        messages: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.operator = operator
        self.library = library
        self.node = node
        self.messages = messages


class UnsupportedError(PasslibError):
    """Something has no faithful translation; the message names node, operator and attribute."""


class InternalError(PasslibError):
    """A mistake in passlib itself; the message names the node, and the cause has the traceback."""


class UnsoundFileError(FormatError, GraphError):
    """A file is well formed, but the graph in it contradicts itself."""


class PassResultError(PassError, GraphError):
    """A pass reported success, but returned no sound graph."""


def listed(names: Sequence[str], most: int = 8) -> str:
    """Spell names for a message: the first ones, and how many there are in all."""
    shown = ", ".join(names[:most]) or "none"
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


def did_you_mean(word: str, known: Iterable[str], most: int = 3) -> str:
    """Return a clause that names the nearest spellings; empty if none is near.

    Parameters
    ----------
    word : str
        What is not known.
    known : iterable of str
    most : int
        How many to name.
    """
    from difflib import get_close_matches  # which only messages need

    near = get_close_matches(word, list(known), most)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
