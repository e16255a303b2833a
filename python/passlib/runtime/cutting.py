"""Cutting a graph at the operators of libraries, into as few runnable pieces as possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from passlib.graph.node import VARIABLE, Entry, Node, postorder
from passlib.lowering import Graph
from passlib.lowering.walk import Overriding

Value: TypeAlias = "tuple[Node, int]"
"""An output of a node, or a variable."""

Reads: TypeAlias = "dict[Node, set[int]]"


@dataclass(frozen=True, eq=False)
class Call:
    """One node whose operator belongs to a library.

    Attributes
    ----------
    node : Node
    outputs : tuple of int
        Which of its outputs other steps or the caller need.
    """

    node: Node
    outputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Piece:
    """Built-in operators that run as one model, a separate graph.

    Attributes
    ----------
    entries : tuple of Entry
        Results that other steps or the caller need.
    outputs : tuple of Value
        The same, as values of the whole graph.
    boundary : mapping of str to Value
        Variables of the piece that stand for results of other steps.
    variables : tuple of str
        Its other variables, which belong to the whole graph.
    """

    entries: tuple[Entry, ...]
    outputs: tuple[Value, ...]
    boundary: Mapping[str, Value]
    variables: tuple[str, ...]
    _nodes: tuple[Node, ...]

    def nodes(self) -> list[Node]:
        """Every node, each after its inputs."""
        return list(self._nodes)


Step: TypeAlias = "Call | Piece"


@dataclass(frozen=True)
class Cut:
    """A graph as steps, each after those that it needs.

    Attributes
    ----------
    steps : tuple of Step
    last_uses : tuple of tuple of Value
        For each step, the values that are not needed after it. Variables and outputs of the graph
        are never among them.
    """

    steps: tuple[Step, ...]
    last_uses: tuple[tuple[Value, ...], ...]


def cut(
    graph: Graph,
    is_call: Callable[[Node], bool],
    written: Callable[[Node], Collection[int]],
    overriding: Overriding,
) -> Cut:
    """Cut a graph into the fewest pieces.

    A node belongs to piece ``k`` if, of the paths that lead to it, the one that changes most often
    from built-in operators to a library's and back does so ``k`` times. These are as many pieces as
    that longest path needs on its own, so none could be saved. Independent nodes of one number are
    one piece. Takes time and memory linear in nodes and edges.

    Parameters
    ----------
    is_call : callable
        Whether a node's operator belongs to a library.
    written : callable
        Returns the positions of the inputs that a node writes to. Nodes that read such a value
        earlier in the graph's order also read it earlier in the steps.
    overriding : mapping of Node to mapping of str to str
        Attribute values that replace a node's own in the pieces.
    """
    nodes = graph.nodes()
    number = _numbers(nodes, is_call, written)
    pieces: dict[int, list[Node]] = defaultdict(list)
    calls: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        if not node.is_variable:
            (calls if is_call(node) else pieces)[number[node]].append(node)

    def together(producer: Node, consumer: Node) -> bool:
        one_of_them = is_call(producer) or is_call(consumer)
        return not one_of_them and number[producer] == number[consumer]

    reads = _read(graph, nodes, together)

    def call(node: Node) -> Call:
        return Call(node, tuple(sorted(reads.get(node, ()))))

    steps: list[Step] = [call(node) for node in calls[-1]]
    for k in range(len(pieces)):
        if any(node in reads or written(node) for node in pieces[k]):
            steps.append(_piece(pieces[k], reads, overriding))
        steps += [call(node) for node in calls[k]]
    return Cut(tuple(steps), _last_uses(graph, steps))


def _numbers(
    nodes: Sequence[Node],
    is_call: Callable[[Node], bool],
    written: Callable[[Node], Collection[int]],
) -> dict[Node, int]:
    """Return the piece of each built-in operator, and the piece after which each call can run."""
    number: dict[Node, int] = {}
    writer: dict[Value, Node] = {}
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.is_variable:
            continue
        before = [entry.node for entry in node.inputs] + list(node.control_deps)
        targets = written(node)
        for position, entry in enumerate(node.inputs):
            value = entry.node, entry.index
            if value in writer:
                before.append(writer[value])
            if position in targets:
                before += readers.pop(value, ())
                writer[value] = node
            else:
                readers[value].append(node)
        call = is_call(node)
        found = -1 if call else 0
        for other in before:
            if not other.is_variable and other is not node:
                after = number[other] + (is_call(other) and not call)
                found = max(found, after)
        number[node] = found
    return number


def _read(graph: Graph, nodes: Sequence[Node], together: Callable[[Node, Node], bool]) -> Reads:
    """Find which outputs of each operator are needed outside the step that computes them."""
    found: Reads = defaultdict(set)
    for entry in graph.entries:
        found[entry.node].add(entry.index)
    for node in nodes:
        for entry in node.inputs:
            if not entry.node.is_variable and not together(entry.node, node):
                found[entry.node].add(entry.index)
    return found


def _piece(members: Sequence[Node], reads: Reads, overriding: Overriding) -> Piece:
    inside = set(members)
    made: dict[Node, Node] = {}
    taken = {e.node.name for node in members for e in node.inputs if e.node.is_variable}
    boundary: dict[str, Value] = {}
    standing: dict[Value, Entry] = {}

    def source(entry: Entry) -> Entry:
        if entry.node in inside:
            return entry._replace(node=made[entry.node])
        if entry.node.is_variable:
            return entry
        value = entry.node, entry.index
        if value not in standing:
            name = f"{entry.node.name}_output{entry.index}"
            if name in taken:
                name = f"{name}_{len(boundary)}"
            while name in taken:
                name += "_"
            taken.add(name)
            boundary[name] = value
            standing[value] = Entry(Node(VARIABLE, name, num_outputs=1))
        return standing[value]

    for node in members:
        made[node] = Node(
            node.op,
            node.name,
            {**node.attrs, **overriding.get(node, {})},
            [source(entry) for entry in node.inputs],
            node.num_outputs,
            [made[other] for other in node.control_deps if other in inside],
            node.subgraphs,
        )
    outputs = [(node, index) for node in members for index in sorted(reads.get(node, ()))]
    entries = tuple(Entry(made[node], index) for node, index in outputs)
    # A node whose outputs are unused may still write to a variable.
    nodes = tuple(postorder(made.values()))
    variables = tuple(n.name for n in nodes if n.is_variable and n.name not in boundary)
    return Piece(entries, tuple(outputs), boundary, variables, nodes)


def _last_uses(graph: Graph, steps: Sequence[Step]) -> tuple[tuple[Value, ...], ...]:
    kept = {(entry.node, entry.index) for entry in graph.entries}
    seen = set(kept)
    found: list[tuple[Value, ...]] = []
    for step in reversed(steps):
        last = []
        for value in _touched(step):
            if value not in seen:
                seen.add(value)
                last.append(value)
        found.append(tuple(last))
    return tuple(reversed(found))


def _touched(step: Step) -> Iterator[Value]:
    """Iterate over the values that a step reads or computes, without variables."""
    if isinstance(step, Piece):
        yield from step.boundary.values()
        yield from step.outputs
        return
    for entry in step.node.inputs:
        if not entry.node.is_variable:
            yield entry.node, entry.index
    for index in step.outputs:
        yield step.node, index
