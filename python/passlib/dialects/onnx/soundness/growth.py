"""Nodes through which ONNX's inference could make shapes of very many axes.

It lists the axes of each value, however many there are: a chain of 30 Gather doubles their number
30 times, and before operator set 13 Expand takes as many as its second input is stated to have
elements. Such nodes are found by an upper bound that costs one walk over the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.soundness.propagation import MOST_ELEMENTS

MOST_AXES: Final = 1024
"""Values of more axes are not inferred; no runtime computes with so many."""

_USUAL: Final = 16
"""Axes that a result may have where nothing else is known."""

_JOINING: Final = frozenset(("Gather", "GatherND"))
"""The operators whose results have the axes of two inputs."""

_ADDING: Final = frozenset(("ConcatFromSequence", "OneHot", "Unsqueeze"))

_LISTS: Final = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1, "Unsqueeze": 1}
"""The inputs that list axes."""

_FEW: Final = 2
"""So many joining nodes leave shapes within a small multiple of what the file states."""

_LISTED: Final = 13
"""The operator set from which on inference of Expand no longer goes by a stated length."""

_OWN: Final = ("", "ai.onnx")

_MOST_EXPANDED: Final = 100_000
"""Nodes of functions that are looked at, for all calls together."""


def growing_nodes(
    model: Any, graphs: Sequence[Any], versions: Mapping[str, int], *, certain: bool = False
) -> list[tuple[int, int]]:
    """Find the nodes whose results may have more than `MOST_AXES` axes.

    Parameters
    ----------
    model : onnx.ModelProto
        With sound nodes, and functions that do not call themselves.
    graphs : sequence of onnx.GraphProto
        Those of the model, in the order of `graphs_within`.
    versions : mapping of str to int
        Of the operator sets, by domain.
    certain : bool
        Leave out those about whose inputs too little is stated.

    Returns
    -------
    list of (int, int)
        Number of the graph and of the node in it. What is found in a function stands at the call.
    """
    if not _may_grow(model, graphs, versions):
        return []
    walk = _Walk(model, graphs, versions)
    return sorted(walk.certain if certain else walk.found)


class _Scope:
    """What is known of the values of graphs, or of a function in one call."""

    def __init__(
        self, *, by_length: bool, nests: bool = True, place: tuple[int, int] | None = None
    ) -> None:
        self.by_length = by_length
        self.nests = nests  # whether nodes may have nested graphs
        self.place = place  # of the call
        self.stated: dict[str, int] = {}
        self.bounds: dict[str, int] = {}
        self.lengths: dict[str, int] = {}

    def add(self, graph: Any) -> None:
        """Add what a graph states."""
        for value in (*graph.input, *graph.value_info, *graph.output):
            tensor = value.type.tensor_type
            if tensor.HasField("shape"):
                known = [dim.dim_value if dim.HasField("dim_value") else None
                         for dim in tensor.shape.dim]  # fmt: skip
                self._state(value.name, known)
        for weight in graph.initializer:
            self._state(weight.name, list(weight.dims))

    def _state(self, name: str, sizes: list[int | None]) -> None:
        self.stated[name] = self.bounds[name] = len(sizes)
        if len(sizes) == 1 and sizes[0] is not None:
            self.lengths[name] = sizes[0]

    def most(self, node: Any) -> int:
        """Return the largest bound of a node's inputs."""
        return max((self.bounds.get(name, 0) for name in node.input), default=0)

    def is_small(self, name: str) -> bool:
        """Whether a value is a vector of few elements, or none."""
        if self.stated.get(name, 1) != 1:
            return True
        return self.lengths.get(name, MOST_ELEMENTS + 1) <= MOST_ELEMENTS

    def bound(self, node: Any) -> int:
        """Return how many axes the results of a node may have, unless it calls a function."""
        most = self.most(node)
        if node.domain not in _OWN:
            return _USUAL
        op = node.op_type
        if op in _JOINING:
            return sum(self.bounds.get(name, 0) for name in node.input)
        if op == "Expand" and self.by_length and not self.is_small(node.input[1]):
            return MOST_AXES + 1
        if op in _ADDING:
            return most + max(self._listed(node), 1)
        if self.nests:
            inside = [self.bounds.get(v.name, 0) for each in _nested(node) for v in each.output]
            if inside:
                return max(most, *inside) + 1
        return min(max(most, self._listed(node), _USUAL), MOST_AXES)

    def _listed(self, node: Any) -> int:
        """Return how many axes a node lists, in an input or an attribute."""
        place = _LISTS.get(node.op_type)
        if place is None:
            return 0
        length = self.lengths.get(node.input[place], 0) if place < len(node.input) else 0
        return max((length, *(len(each.ints) for each in node.attribute)))

    def is_certain(self, node: Any) -> bool:
        """Whether a node of too many axes has them by what is stated."""
        if node.op_type == "Expand":
            return self.lengths.get(node.input[1], 0) > MOST_ELEMENTS
        return all(name in self.stated for name in node.input if name)


class _Walk:
    """A walk in which each node comes after those that it depends on, and after nested ones."""

    def __init__(self, model: Any, graphs: Sequence[Any], versions: Mapping[str, int]) -> None:
        self.found: set[tuple[int, int]] = set()
        self.certain: set[tuple[int, int]] = set()
        self._graphs = graphs
        self._functions = {(each.domain, each.name): each for each in model.functions}
        self._budget = _MOST_EXPANDED
        nests = len(graphs) > 1 or bool(self._functions)
        main = _Scope(by_length=_goes_by_length(versions), nests=nests)
        for graph in graphs:
            main.add(graph)
        if nests:
            self._run(main)
        else:  # most models, in a third of the time
            for place, node in enumerate(graphs[0].node):
                self._finish(main, node, (0, place), None)

    def _run(self, main: _Scope) -> None:
        numbers = {id(graph): number for number, graph in enumerate(self._graphs)}
        # Each task is a node with what comes of it, or a list of nodes that are still to be read.
        tasks: list[tuple[_Scope, Any, int, int, bool]] = [(main, self._graphs[0], 0, -1, False)]
        inner: list[_Scope] = []
        while tasks:
            scope, body, number, place, ready = tasks.pop()
            if place < 0:
                reversed_places = range(len(body.node) - 1, -1, -1)
                tasks.extend((scope, body, number, each, False) for each in reversed_places)
                continue
            node = body.node[place]
            called = self._functions.get((node.domain, node.op_type))
            if ready:
                self._finish(scope, node, (number, place), inner.pop() if called else None)
                continue
            if called is not None and self._budget < len(called.node):
                self._flag(scope, (number, place), node, certain=False)
                continue
            tasks.append((scope, body, number, place, True))
            if called is not None:
                self._budget -= len(called.node)
                inner.append(self._call(scope, node, called, (number, place)))
                tasks.append((inner[-1], called, -1, -1, False))
            for each in _nested(node):
                self._enter(scope, each, node)
                tasks.append((scope, each, numbers.get(id(each), -1), -1, False))

    @staticmethod
    def _call(scope: _Scope, node: Any, function: Any, place: tuple[int, int]) -> _Scope:
        made = _Scope(by_length=_goes_by_length(_versions_of(function)), place=scope.place or place)
        for formal, actual in zip(function.input, node.input, strict=False):
            for theirs, ours in (
                (made.stated, scope.stated),
                (made.bounds, scope.bounds),
                (made.lengths, scope.lengths),
            ):
                if actual in ours:
                    theirs[formal] = ours[actual]
        return made

    @staticmethod
    def _enter(scope: _Scope, graph: Any, node: Any) -> None:
        """Bound the inputs of a nested graph, which get the node's."""
        most = scope.most(node)
        for value in graph.input:
            scope.bounds[value.name] = max(scope.bounds.get(value.name, 0), most)

    def _finish(
        self, scope: _Scope, node: Any, place: tuple[int, int], inside: _Scope | None
    ) -> None:
        if inside is not None:
            function = self._functions[node.domain, node.op_type]
            for formal, actual in zip(function.output, node.output, strict=False):
                known = scope.stated.get(actual)
                scope.bounds[actual] = inside.bounds.get(formal, 0) if known is None else known
                if scope.place is not None and formal in inside.stated:
                    scope.stated[actual] = inside.stated[formal]
            return
        bound = scope.bound(node)
        if bound > MOST_AXES:
            self._flag(scope, place, node, certain=scope.is_certain(node))
            return
        for name in node.output:
            scope.bounds[name] = scope.stated.get(name, bound)
        if scope.place is not None and all(name in scope.stated for name in node.input if name):
            # Within a function nothing is stated, but inference would know it.
            known = bound if node.op_type in _JOINING | _ADDING else scope.most(node)
            scope.stated.update(dict.fromkeys(node.output, known))

    def _flag(self, scope: _Scope, place: tuple[int, int], node: Any, *, certain: bool) -> None:
        where = scope.place or place
        self.found.add(where)
        if certain:
            self.certain.add(where)
        for name in node.output:
            scope.bounds[name] = scope.stated.get(name, 0)  # it will not be inferred


def _may_grow(model: Any, graphs: Sequence[Any], versions: Mapping[str, int]) -> bool:
    """Whether a model has enough of the nodes that a walk is worth its time.

    Nodes whose results have stated shapes of the usual number of axes do not count.
    """
    by_length = _goes_by_length(versions) or any(
        _goes_by_length(_versions_of(each)) for each in model.functions
    )
    joins = adds = 0
    inner = list(graphs_within(*model.functions))
    for number, graph in enumerate((*graphs, *inner)):
        stated = None if number < len(graphs) else frozenset[str]()
        for node in graph.node:
            op = node.op_type
            if op == "Expand" and by_length:
                return True
            if op in _JOINING or op in _ADDING:
                if stated is None:
                    stated = _usual_values(graph)
                if not stated.issuperset(node.output):
                    joins += op in _JOINING
                    adds += op in _ADDING
    return joins > _FEW or adds > MOST_AXES // 2


def _usual_values(graph: Any) -> frozenset[str]:
    """Return the values of a graph whose stated shapes have a usual number of axes."""
    stated = ((value.name, value.type.tensor_type) for value in (*graph.value_info, *graph.output))
    return frozenset(
        name
        for name, tensor in stated
        if tensor.HasField("shape") and len(tensor.shape.dim) <= _USUAL
    )


def _versions_of(function: Any) -> dict[str, int]:
    return {each.domain: each.version for each in function.opset_import}


def _goes_by_length(versions: Mapping[str, int]) -> bool:
    return versions.get("", versions.get("ai.onnx", _LISTED)) < _LISTED


def _nested(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
