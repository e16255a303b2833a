"""What `optimize_for` runs by name, what it is called with, and what it returns."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

import passlib._core as _core
from passlib.dialects import Dialect
from passlib.errors import UnsupportedError
from passlib.library.declared import Declaration, list_text
from passlib.library.handle import Library

_SURROGATE = re.compile("[\ud800-\udfff]")

Param = tuple[str, "np.ndarray[Any, Any]", int]
"""A parameter as inference takes it: name, array, MXNet's dtype code."""


Arrays = Mapping[str, "np.ndarray[Any, Any] | _core.ScaledArray"]
"""New parameters by name."""


class Holder(Protocol):
    """The arrays of ``args`` or of ``aux`` during one call."""

    @property
    def params(self) -> list[Param]:
        """Those of the graph's variables."""

    @property
    def accepts_new(self) -> bool:
        """Whether there is a dictionary to put new parameters into."""

    def commit(self, gone: Sequence[str], new: Arrays, is_parameter: Callable[[str], bool]) -> None:
        """Bring the caller's dictionary up to date, after everything else has succeeded.

        Parameters
        ----------
        gone : sequence of str
            Variables that are gone from the graph.
        new : mapping of str to numpy.ndarray or _core.ScaledArray
            Parameters that the pass made.
        is_parameter : callable
            Whether a name in ``gone`` was a parameter; data inputs stay.
        """


@dataclass(frozen=True)
class Call:
    """What a pass or partitioner is called with besides the graph.

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

    def option_texts(self, *, declared: bool = False) -> list[tuple[str, str]]:
        """Return the options as a library gets them.

        Parameters
        ----------
        declared : bool
            Whether the pass declares its options: then lists are written as JSON, otherwise as
            Python prints them, as MXNet does.

        Raises
        ------
        UnsupportedError
            One has half of a surrogate pair in it, which UTF-8 cannot express.
        """
        texts = [
            (key, list_text(value) if declared and isinstance(value, tuple) else str(value))
            for key, value in self.options.items()
        ]
        for key, value in texts:
            if _SURROGATE.search(key + value):
                message = (
                    f"the option {key!r} has half of a surrogate pair in it and cannot be passed "
                    "to a library, whose texts are UTF-8"
                )
                raise UnsupportedError(message)
        return texts


class Outcome(NamedTuple):
    """The result of a pass."""

    graph: _core.Graph
    """Checked."""
    attributes: dict[str, str]
    """The graph's own attributes, as JSON by key."""
    params: tuple[Arrays, Arrays]
    """Those that the pass allocated and the graph has variables for: arguments, states."""
    gone: list[str]
    """Variables that the graph had before and no longer has."""


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
        call : Call
        graph : _core.Graph
            Stays as it is, unless ``call.types_known``.
        dialect : Dialect
            That of the graph.

        Returns
        -------
        Outcome

        Raises
        ------
        PassError
            The pass failed, or returned no sound graph (`PassResultError`).
        """
