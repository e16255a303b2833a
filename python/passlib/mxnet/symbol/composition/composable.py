"""Graphs of named dialects that MXNet's operators are applied to."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.dialects import Dialect, find
from passlib.graph.node import Entry
from passlib.graph.plain import PlainGraph


class Composable(PlainGraph):
    """A plain graph whose dialect is given by name.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs.
    dialect : str
        The family of models that the graph belongs to.

    Raises
    ------
    UnsupportedError
        There is no such dialect.
    """

    __slots__ = ()

    def __init__(self, entries: Sequence[Entry], dialect: str = "mxnet") -> None:
        super().__init__(entries, find(dialect))

    @property
    def family(self) -> Dialect:
        """The dialect itself."""
        return find(self.dialect)
