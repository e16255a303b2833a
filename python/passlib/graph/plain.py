"""The plain graph: outputs, nodes and native form, with the conventions of its dialect."""

from __future__ import annotations

import copyreg
import gc
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, cast

import passlib._core as _core
from passlib.graph.node import VARIABLE, Entry, Node, postorder


def with_sources(
    entries: Sequence[Entry], sources: Mapping[tuple[Node, int], Node]
) -> tuple[Entry, ...]:
    """Return the outputs of a graph that is cut at some values.

    ``sources`` has the variable that takes the place of a value. The graph stays as it is; the new
    one shares the nodes that need no change, and has no control dependencies on nodes that no
    output needs.
    """
    needed = _needed(entries, sources)
    new: dict[int, Node] = {}

    def follow(entry: Entry) -> Entry:
        source = sources.get((entry.node, entry.index))
        return entry._replace(node=new[id(entry.node)]) if source is None else Entry(source)

    for node in postorder(entry.node for entry in entries):
        if id(node) not in needed:
            continue
        inputs = [follow(entry) for entry in node.inputs]
        deps = [new[id(dep)] for dep in node.control_deps if id(dep) in needed]
        same = all(a.node is b.node for a, b in zip(inputs, node.inputs, strict=True))
        same = same and len(deps) == len(node.control_deps)
        if same and all(a is b for a, b in zip(deps, node.control_deps, strict=True)):
            new[id(node)] = node
        else:
            outputs, nested = node.num_outputs, node.subgraphs
            new[id(node)] = Node(node.op, node.name, node.attrs, inputs, outputs, deps, nested)
    return tuple(follow(entry) for entry in entries)


def _needed(entries: Sequence[Entry], sources: Mapping[tuple[Node, int], Node]) -> set[int]:
    """Return the identities of the nodes that the outputs need, given the sources."""
    found: set[int] = set()
    pending = list(entries)
    while pending:
        entry = pending.pop()
        if (entry.node, entry.index) in sources or id(entry.node) in found:
            continue
        found.add(id(entry.node))
        pending.extend(entry.node.inputs)
    return found


WITH_GRAPHS = {"If", "Loop", "Scan", "SequenceMap"}
"""The operators of ONNX that have nested graphs."""

ORIGIN = "__origin__"
"""On nodes that patterns made: names of the nodes that they replaced, as a JSON list."""

RULES = "__rules__"
"""On nodes that rules made: names of the rules, the last one last, as a JSON list."""


def thaw(
    graph: _core.Graph, nest: Callable[[_core.Graph], Any]
) -> tuple[tuple[Node, ...], tuple[Entry, ...]]:
    """Make the nodes of a native graph, in its order, and its outputs.

    Each node comes after its inputs; ``nest`` converts a nested graph to what ``Node.subgraphs``
    holds.
    """
    nodes: list[Node] = []
    for op, name, attrs, inputs, num_outputs, deps, subgraphs in graph.nodes():
        nodes.append(
            Node(
                op,
                name,
                attrs,
                [Entry(nodes[i], index, version) for i, index, version in inputs],
                num_outputs,
                [nodes[i] for i in deps],
                [nest(subgraph) for subgraph in subgraphs],
            )
        )
    heads = tuple(Entry(nodes[i], index, version) for i, index, version in graph.heads())
    return tuple(nodes), heads


def freeze(
    entries: Sequence[Entry],
    unnest: Callable[[Any], _core.Graph],
    nodes: Sequence[Node] | None = None,
) -> _core.Graph:
    """Make the native graph of these outputs.

    ``unnest`` is the reverse of ``nest`` in `thaw`. ``nodes`` are all nodes, each after its inputs,
    by default those that the outputs need, in post-order. Raises `GraphError` if two variables have
    one name, or an output is used that its node does not have.
    """
    if nodes is None:
        nodes = postorder(entry.node for entry in entries)
    number = {id(node): i for i, node in enumerate(nodes)}
    described = [
        (
            node.op,
            node.name,
            dict(node.attrs),
            [(number[id(e.node)], e.index, e.version) for e in node.inputs],
            node.num_outputs,
            [number[id(dep)] for dep in node.control_deps],
            [unnest(subgraph) for subgraph in node.subgraphs],
        )
        for node in nodes
    ]
    heads = [(number[id(e.node)], e.index, e.version) for e in entries]
    graph = _core.Graph.build(described, heads)
    graph.check()
    return graph


@contextmanager
def collection_off() -> Iterator[None]:
    """Disable the collector in the block, which makes the many objects of a graph.

    The collector would traverse all of them repeatedly and find no garbage.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def rebuild(content: bytes) -> _core.Graph:
    """Return the graph that was pickled as these bytes."""
    with collection_off():
        return _core.Graph.build(*pickle.loads(content))


def _reduce(graph: _core.Graph) -> tuple[Any, ...]:
    # The collector would traverse the many tuples repeatedly while they are made.
    with collection_off():
        content = [tuple(node) for node in graph.nodes()], graph.heads()
        return rebuild, (pickle.dumps(content, pickle.HIGHEST_PROTOCOL),)


copyreg.pickle(_core.Graph, _reduce)


def without_origins(graph: _core.Graph) -> _core.Graph:
    """Return a graph for a file: the same one, or a copy without ``__origin__``, ``__rules__``."""
    if not graph.has_node_attribute(ORIGIN) and not graph.has_node_attribute(RULES):
        return graph
    copy = graph.copy()
    copy.drop_node_attributes([ORIGIN, RULES])
    return copy


def operators_of(graph: _core.Graph) -> Counter[str]:
    """Count the operators of a graph by name, those of nested graphs included."""
    found: Counter[str] = Counter()
    pending = [graph]
    while pending:
        each = pending.pop()
        found.update(each.operators())
        for *_, nested in each.nodes_with(WITH_GRAPHS):
            pending += nested
    del found[VARIABLE]
    return found


_G = TypeVar("_G", bound="PlainGraph")


class Conventions(Protocol):
    """The part of a dialect that its graphs use."""

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
    """An immutable graph of a dialect, seen from its outputs."""

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
        """Wrap a native graph, which must not change afterwards.

        It is checked, each node comes after its inputs, in post-order if the dialect is ordered.
        ``attributes`` are the graph's own, as JSON by key; None for the dialect's defaults.
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
        """Return the names of the variables that operators write to, such as moving means."""
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
    """Return a whole graph; raise `TypeError` for anything else, such as a part cut out of one."""
    if isinstance(graph, PlainGraph):
        return graph
    raise TypeError(f"a whole graph is needed, not {type(graph).__name__}")
