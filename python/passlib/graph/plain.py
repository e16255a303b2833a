"""The plain graph: outputs, nodes and native form, with the conventions of its dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar, cast

import passlib._core as _core
from passlib.graph.native import freeze, thaw
from passlib.graph.node import Entry, Node, postorder

_G = TypeVar("_G", bound="PlainGraph")


class Conventions(Protocol):
    """What a graph asks its dialect."""

    @property
    def name(self) -> str:
        """Name of the dialect."""

    def default_attributes(self) -> dict[str, str]:
        """Return the top-level attributes of a new graph, as JSON by key."""

    def complete(self, graph: _core.Graph) -> None:
        """Set the numbers of outputs that the schema knows."""

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        """Return the names of the arguments and of the auxiliary states."""

    def visible_outputs(self, node: Node) -> int:
        """Return how many outputs of a node other nodes may use."""

    def output_names(self, graph: PlainGraph) -> list[str]:
        """Return the names of a graph's outputs."""

    def selected(self, attributes: Mapping[str, str]) -> dict[str, str]:
        """Return the attributes of a graph whose outputs are chosen among another's."""


class PlainGraph:
    """An immutable graph, seen from its outputs.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs.
    conventions : Conventions
        The dialect that the graph belongs to.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_conventions",
        "_entries",
        "_graph",
        "_nodes",
        "_output_names",
    )

    def __init__(self, entries: Sequence[Entry], conventions: Conventions) -> None:
        self._conventions = conventions
        self._entries: tuple[Entry, ...] | None = tuple(entries)
        self._nodes: tuple[Node, ...] | None = None
        self._graph: _core.Graph | None = None
        self._output_names: tuple[str, ...] | None = None
        self._attributes = conventions.default_attributes()

    @classmethod
    def of_native(
        cls: type[_G],
        graph: _core.Graph,
        attributes: Mapping[str, str] | None,
        conventions: Conventions,
    ) -> _G:
        """Wrap a native graph, which nobody may change afterwards.

        Parameters
        ----------
        graph : _core.Graph
            Checked, each node after its inputs; in post-order if the dialect is ordered.
        attributes : mapping of str to str or None
            The graph's own attributes, as JSON by key; None for the dialect's defaults.
        conventions : Conventions
        """
        made = cls.__new__(cls)
        made._conventions = conventions
        made._entries = made._nodes = made._output_names = None
        made._graph = graph
        made._attributes = dict(attributes or conventions.default_attributes())
        return made

    def with_entries(self: _G, entries: Sequence[Entry]) -> _G:
        """Return a graph of the same class, dialect and attributes with other outputs."""
        made = type(self).__new__(type(self))
        made._conventions = self._conventions
        made._entries = tuple(entries)
        made._nodes = made._graph = made._output_names = None
        made._attributes = self._conventions.selected(self._attributes)
        return made

    # The graph is kept in the form it was made in; the other form is made when asked for.

    def _thaw(self) -> None:
        cls, conventions = type(self), self._conventions
        self._nodes, self._entries = thaw(
            cast("_core.Graph", self._graph),
            lambda nested: cls.of_native(nested, None, conventions),
        )

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The outputs: which output of which node."""
        if self._entries is None:
            self._thaw()
        return cast("tuple[Entry, ...]", self._entries)

    @property
    def graph(self) -> _core.Graph:
        """The graph in native form. It belongs to this object: copy it before changing it."""
        if self._graph is None:
            self._graph = freeze(cast("tuple[Entry, ...]", self._entries), lambda s: s.graph)
            self._conventions.complete(self._graph)
        return self._graph

    @property
    def dialect(self) -> str:
        """Name of the family of models that the graph belongs to."""
        return self._conventions.name

    @property
    def attributes(self) -> Mapping[str, str]:
        """The graph's own attributes, as JSON by top-level key of the file."""
        return MappingProxyType(self._attributes)

    def nodes(self) -> list[Node]:
        """List all nodes, each after its inputs.

        A node's edges are in ``node.inputs``; see also `edges`.
        """
        if self._entries is None:
            self._thaw()
        if self._nodes is None:
            self._nodes = tuple(postorder(entry.node for entry in self.entries))
        return list(self._nodes)

    def edges(self) -> Iterator[tuple[Node, int, Node, int]]:
        """Iterate over the edges: producer, its output, consumer, its input."""
        for node in self.nodes():
            for slot, entry in enumerate(node.inputs):
                yield entry.node, entry.index, node, slot

    def list_arguments(self) -> list[str]:
        """Return the names of the variables that are not auxiliary states: inputs and weights."""
        return self._conventions.variables(self.graph)[0]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the variables that operators write to.

        An example is the moving mean of a BatchNorm.
        """
        return self._conventions.variables(self.graph)[1]

    def list_inputs(self) -> list[str]:
        """Return the names of all variables, in the order of the graph."""
        return self.graph.variables({})[0]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs.

        Examples are ``fc1_output``, ``split0_output1`` and ``bn_mean``; an output that is a
        variable has the variable's name.
        """
        if self._output_names is None:
            self._output_names = tuple(self._conventions.output_names(self))
        return list(self._output_names)


def whole(graph: object) -> PlainGraph:
    """Return the argument, which must be a whole graph and no part cut out of one.

    Raises
    ------
    TypeError
        It is something else.
    """
    if isinstance(graph, PlainGraph):
        return graph
    raise TypeError(f"a whole graph is needed, not {type(graph).__name__}")
