"""The names of values while an ONNX graph is read: its own and those of the graphs around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from passlib import _core
from passlib.dialects.onnx.document import ABSENT, OUTER
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.node import VARIABLE

__all__ = ["Enclosing", "Entry", "Scope"]

Entry = tuple[int, int, int]
"""A value: position of its node, output, and the version that graphs store with these."""


class Enclosing(NamedTuple):
    """The node around some nested graphs.

    Attributes
    ----------
    scope : Scope
        Of the graph that the node is in.
    formal : int
        Number of inputs that are the operator's own.
    captures : dict of str to int
        Values that the nested graphs take from outside, numbered by their first use: the inputs
        that the node gets after its own.
    """

    scope: Scope
    formal: int
    captures: dict[str, int]


class Scope:
    """The nodes of one graph so far, and the values that they define.

    Parameters
    ----------
    names : set of str
        Gets every name that is defined.
    enclosing : Enclosing, optional
        The node around a nested graph.

    Attributes
    ----------
    nodes : list of tuple
        As `_core.Graph.build` takes them.
    values : dict of str to Entry
    """

    def __init__(self, names: set[str], enclosing: Enclosing | None = None) -> None:
        self.nodes: list[Any] = []
        self.values: dict[str, Entry] = {}
        self._names = names
        self._enclosing = enclosing

    def add(
        self,
        op: str,
        name: str,
        attrs: dict[str, str],
        inputs: Sequence[Entry],
        outputs: int,
        subgraphs: Sequence[_core.Graph] = (),
    ) -> int:
        """Add a node, and return its position."""
        self.nodes.append((op, name, attrs, inputs, outputs, (), subgraphs))
        return len(self.nodes) - 1

    def add_variable(self, name: str, attrs: dict[str, str]) -> None:
        """Add a variable, and define its value.

        Raises
        ------
        GraphError, UnsupportedError
            The name is missing, taken or reserved.
        """
        if not name:
            raise GraphError("an input or initializer of the graph has no name")
        self.define(name, len(self.nodes), 0)
        self.add(VARIABLE, name, attrs, [], 1)

    def define(self, name: str, node: int, output: int) -> None:
        """Name an output of a node.

        Raises
        ------
        GraphError, UnsupportedError
            The name is taken or reserved.
        """
        if name == ABSENT:
            raise UnsupportedError(f"a value is named {ABSENT!r}, which passlib reserves")
        if name in self.values:
            raise GraphError(f"value {name!r} is defined twice")
        self.values[name] = (node, output, 0)
        self._names.add(name)

    def find(self, name: str, user: str) -> Entry:
        """Return the value of a name, in this graph or captured from one around it.

        Parameters
        ----------
        name : str
            Empty for an omitted input.
        user : str
            For messages.

        Raises
        ------
        GraphError
            Nothing defines it.
        """
        found = self.values.get(name)
        if found is not None:
            return found
        if not name:
            self.values[""] = (self.add(VARIABLE, ABSENT, {}, [], 1), 0, 0)
            return self.values[""]
        enclosing = self._enclosing
        if enclosing is None or not enclosing.scope.defines(name):
            raise GraphError(f"{user} is {name!r}, which nothing before it computes")
        slot = enclosing.captures.setdefault(name, len(enclosing.captures))
        attrs = {OUTER: str(enclosing.formal + slot)}
        self.values[name] = (self.add(VARIABLE, name, attrs, [], 1), 0, 0)
        return self.values[name]

    def defines(self, name: str) -> bool:
        """Whether a name has a value in this graph or in one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return True
            scope = None if scope._enclosing is None else scope._enclosing.scope
        return False
