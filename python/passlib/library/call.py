"""Loaded libraries, the calls of their passes and of passes in Python, and what they print."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

import passlib._core as _core
from passlib.dialects import Dialect
from passlib.errors import printable, short_repr
from passlib.library.declared import Declaration, PassNames

MXNET_VERSION: Final = 10901
"""The version that ``initialize`` gets by default: that of the MXNet that passlib follows."""

_STANDARD: Final = "libpasslib_passes.so"


@cache
def standard_path() -> Path:
    """Return the path of the library of standard passes, which is installed with passlib."""
    return Path(_core.__file__).with_name(_STANDARD)


@short_repr
@dataclass(frozen=True)
class Library:
    """A loaded library. It stays loaded until the process ends.

    Attributes
    ----------
    path : str
        Absolute path of the file.
    sha256 : str
        Of the file as it was loaded, in hexadecimal.
    abi_version : int
        Version of the extension ABI: 7 (MXNet 1.7) to 11 (1.9, 2.0).
    passes : PassNames
        Names of the passes that the library registered, in its order; ``passes[name]`` is what a
        pass declares.
    partitioners, ops : tuple of str
        Names that the library registered, in its order.

    Examples
    --------
    >>> import passlib as pl
    >>> library = pl.library.load_standard()
    >>> library.abi_version, len(library.sha256)
    (11, 64)
    >>> "removeDeadNodes" in library.passes
    True
    """

    path: str
    sha256: str
    abi_version: int
    passes: PassNames
    partitioners: tuple[str, ...]
    ops: tuple[str, ...]
    core: _core.Library = field(repr=False, compare=False)

    @property
    def handover(self) -> str:
        """How passes and partitioners get their graph.

        ``"flat"``: as arrays of plain structs; ``"json"``: as text, which MXNet's header reads and
        which takes longer.
        """
        return self.core.handover


Param = tuple[str, "np.ndarray[Any, Any]", int]
"""A parameter as inference takes it: name, array, MXNet's dtype code."""


Arrays = Mapping[str, "np.ndarray[Any, Any] | _core.ScaledArray"]
"""New parameters by name."""


class Holder(Protocol):
    """The arrays of ``args`` or of ``aux`` during one call."""

    @property
    def params(self) -> list[Param]:
        """The arrays of the graph's variables."""

    @property
    def accepts_new(self) -> bool:
        """Whether there is a dictionary to put new parameters into."""

    def commit(self, gone: Sequence[str], new: Arrays, is_parameter: Callable[[str], bool]) -> None:
        """Bring the caller's dictionary up to date, after everything else has succeeded.

        ``gone``: variables that are gone from the graph. ``new``: parameters that the pass made.
        ``is_parameter``: whether a name in ``gone`` was a parameter; data inputs stay.
        """


@dataclass(frozen=True)
class Call:
    """The arguments of a call of a pass or partitioner besides the graph.

    Attributes
    ----------
    options : mapping
        Checked by the declaration; reach a library as text.
    attributes : mapping of str to str
        Attributes of the graph that the pass sees, as JSON by key.
    args, aux : Holder
        As `Backend.lend` returned them.
    types_known : bool
        Whether the graph is a copy whose nodes have inferred shapes and types. The call may use
        it up.
    types : callable or None
        Infers ``__ext_shape__`` and ``__ext_dtype__`` of each node; for the first time that the
        pass reads one.
    own_attributes : mapping of str to str
        Those that a pass does not see.
    """

    options: Mapping[str, object]
    attributes: Mapping[str, str]
    args: Holder
    aux: Holder
    types_known: bool = False
    types: Callable[[], list[tuple[str, str]]] | None = None
    own_attributes: Mapping[str, str] = field(default_factory=dict)


class Outcome(NamedTuple):
    """The result of a pass."""

    graph: _core.Graph
    """Checked."""
    attributes: dict[str, str]
    """The graph's own attributes, as JSON by key."""
    params: tuple[Arrays, Arrays]
    """Arrays that the pass allocated, for variables of the graph: arguments, states."""
    gone: list[str]
    """Variables that the graph had before and no longer has."""


@short_repr
@dataclass(frozen=True)
class Backend(ABC):
    """A pass or a partitioner, which ``optimize_for`` runs by name.

    Attributes
    ----------
    declaration : Declaration

    Examples
    --------
    >>> import passlib as pl
    >>> pl.library.find_backend("mergeEqualNodes").declaration.name
    'mergeEqualNodes'
    """

    declaration: Declaration

    @property
    def library(self) -> Library | None:
        """The library that has it; None for a Python function."""
        return None

    def reads_types(self, graph: _core.Graph) -> bool:
        """Whether types can be inferred while it runs on a graph, when it first reads them."""
        return False

    @abstractmethod
    def lend(
        self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]
    ) -> Holder:
        """Return the arrays of ``args`` or ``aux`` for one call; see `Lent` and `Parameters`."""

    @abstractmethod
    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run on a copy of a graph.

        Parameters
        ----------
        graph : _core.Graph
            Stays as it is, unless ``call.types_known``.
        dialect : Dialect
            That of the graph.

        Raises
        ------
        PassError
            The pass failed, or returned no sound graph (`PassResultError`).
        """


_recording: ContextVar[list[str] | None] = ContextVar("recording", default=None)


def write(text: str) -> None:
    """Write a library's text to `sys.stdout`, and into the innermost `recorded` list."""
    record = _recording.get()
    if record is not None:
        record.append(text)
    sys.stdout.write(text)


def write_escaped(text: str) -> None:
    """Write text of a standard pass, which has names from files in it."""
    write(printable(text, keep="\n"))


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Return a list that also gets what libraries print in this context."""
    record: list[str] = []
    token = _recording.set(record)
    try:
        yield record
    finally:
        _recording.reset(token)
