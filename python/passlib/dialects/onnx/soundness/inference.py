"""Types of the values of models whose nodes are sound; where ONNX's own inference may not go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import passlib._core as _core
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import INPUTS_ALSO
from passlib.dialects.onnx.nested import copy_of, graphs_within
from passlib.dialects.onnx.soundness.corrected import (
    Corrections,
    Known,
    differs,
    put,
    questionable,
    questionable_calls,
)
from passlib.dialects.onnx.soundness.model import check_model, versions_of
from passlib.errors import FormatError, GraphError
from passlib.files.optional import require

MOST_ELEMENTS: Final = 4096
"""A shape of more sizes is not known."""


def rename_operators(
    graphs: Sequence[Any], places: Sequence[tuple[int, int]], names: Sequence[str]
) -> list[str]:
    """Replace the operators of nodes, and return the former ones.

    ``places``: number of the graph and of the node in it. ``names``: an operator for each of them.
    """
    nodes = [graphs[number].node[place] for number, place in places]
    before = [node.op_type for node in nodes]
    for node, name in zip(nodes, names, strict=True):
        node.op_type = name
    return before


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
"""Up to this many joining nodes cannot blow up a shape."""

_LISTED: Final = 13
"""The operator set from which on inference of Expand no longer goes by a stated length."""

_OWN: Final = ("", "ai.onnx")

_MOST_EXPANDED: Final = 100_000
"""Nodes of functions that are looked at, for all calls together."""


def growing_nodes(
    model: Any, graphs: Sequence[Any], versions: Mapping[str, int], *, certain: bool = False
) -> list[tuple[int, int]]:
    """Find the nodes whose results may have more than `MOST_AXES` axes.

    Result: number of the graph and of the node in it. What is found in a function stands at the
    call.

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
    """
    if not _may_grow(model, graphs, versions):
        return []
    walk = _Walk(model, graphs, versions)
    return sorted(walk.certain if certain else walk.found)


class _Scope:
    """The known types of values in graphs, or in one call of a function."""

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


UNTYPED_ENDS: Final = frozenset(
    (("", "EyeLike"), ("", "RegexFullMatch"), ("ai.onnx.ml", "DictVectorizer"),
     ("ai.onnx.ml", "LabelEncoder"), ("ai.onnx.ml", "TreeEnsemble"))
)  # fmt: skip
"""These operators, by domain and name; ``make sweep-untyped`` finds them."""


def untyped_nodes(model: Any, graphs: Sequence[Any]) -> list[tuple[int, int]]:
    """Find the nodes of these operators that take a value whose type is not stated.

    Result: number of the graph and of the node in it. Calls of functions that contain one of these
    operators are among them: types inside are not known.

    Parameters
    ----------
    model : onnx.ModelProto
        With the types of its values as far as they are known, and functions that do not call
        themselves.
    graphs : sequence of onnx.GraphProto
        Those of the model, in the order of `graphs_within`.
    """
    calls = _calls(model)
    found = [
        (number, place, (node.domain, node.op_type) in calls)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if _ends(node) or (calls and (node.domain, node.op_type) in calls)
    ]
    if not found:
        return []
    typed = _typed(model, graphs)
    return [
        (number, place)
        for number, place, is_call in found
        if is_call or not typed.issuperset(filter(None, graphs[number].node[place].input))
    ]


def _ends(node: Any) -> bool:
    return (schema.plain(node.domain), node.op_type) in UNTYPED_ENDS


def _calls(model: Any) -> set[tuple[str, str]]:
    """Return the functions that contain one of the operators, or call such a function."""
    if not model.functions:
        return set()
    inside = {
        (function.domain, function.name): [
            node for graph in graphs_within(function) for node in graph.node
        ]
        for function in model.functions
    }
    found = {key for key, nodes in inside.items() if any(map(_ends, nodes))}
    callers: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for key, nodes in inside.items():
        for node in nodes:
            callers.setdefault((node.domain, node.op_type), set()).add(key)
    pending = list(found)
    while pending:
        new = callers.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def _typed(model: Any, graphs: Sequence[Any]) -> set[str]:
    """Return the names that have a type in each of the graphs that define them."""
    typed: set[str] = set()
    untyped: set[str] = set()
    for graph in graphs:
        stated = set(_stated(graph))
        if model.ir_version >= INPUTS_ALSO:
            stated.update(tensor.name for tensor in graph.initializer)
            stated.update(tensor.values.name for tensor in graph.sparse_initializer)
        untyped.update(name for name in _defined(graph) if name not in stated)
        typed |= stated
    return typed - untyped


def _stated(graph: Any) -> Iterator[str]:
    for value in (*graph.value_info, *graph.input, *graph.output):
        if value.type.WhichOneof("value") is not None:
            yield value.name


def _defined(graph: Any) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    yield from (name for node in graph.node for name in node.output)


_UNKNOWN: Final = "passlib: an operator without rules"


def open_sizes(model: Any) -> None:
    """Remove negative sizes, which stand for unknown ones, from the stated types of a model."""
    for graph in graphs_within(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _innermost(value.type).tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.ClearField("dim_value")


def _innermost(kind: Any) -> Any:
    """Return the type of the elements of sequences, optional values and maps."""
    while True:
        field = kind.WhichOneof("value")
        if field in ("sequence_type", "optional_type"):
            kind = getattr(kind, field).elem_type
        elif field == "map_type":
            kind = kind.map_type.value_type
        else:
            return kind


def inferred(model: Any) -> Any:
    """Return a copy of a model with the types of its values, as far as facts know them.

    ``model``: loses its negative sizes. Raises `GraphError` if it is not sound, see `check_model`.
    """
    check_model(model)
    open_sizes(model)
    return _with_types(model)


def inferred_with_disputes(model: Any) -> tuple[Any, frozenset[str]]:
    """Return what `inferred` does, and the values for which ONNX's inference finds other types.

    Parameters and errors are those of `inferred`.
    """
    found = inferred(model)
    if not _wrong(model, found):
        return found, frozenset()
    graphs = list(graphs_within(model.graph))
    unsafe = _unsafe(found)
    names = rename_operators(graphs, unsafe, [_UNKNOWN] * len(unsafe))
    plain = _once(model)
    rename_operators(graphs, unsafe, names)
    return found, _different(plain, found)


def without_disputes(model: Any) -> Any:
    """Copy a model, without the operators that ONNX's inference gets wrong; None if it has none.

    The copy states what ONNX Runtime computes instead. Errors are those of `inferred`.
    """
    wrong = _wrong(model, inferred(model))
    if not wrong:
        return None
    stated = copy_of(model)
    graphs = list(graphs_within(stated.graph))
    put(graphs, wrong)
    rename_operators(graphs, sorted(wrong), [_UNKNOWN] * len(wrong))
    return stated


def unsafe_to_infer(model: Any) -> Any:
    """Return a node through which ONNX's code must not infer types; None if there is none.

    ``model``: with sound nodes. Loses its negative sizes.
    """
    graphs = list(graphs_within(model.graph))
    found = growing_nodes(model, graphs, versions_of(model.opset_import))
    if not found and untyped_nodes(model, graphs):
        known = inferred(model)
        found = untyped_nodes(known, list(graphs_within(known.graph)))
    return graphs[found[0][0]].node[found[0][1]] if found else None


def _unsafe(known: Any) -> list[tuple[int, int]]:
    """Find the nodes through which ONNX's code must not infer, in a model with types."""
    graphs = list(graphs_within(known.graph))
    growing = growing_nodes(known, graphs, versions_of(known.opset_import))
    return sorted({*growing, *untyped_nodes(known, graphs)})


def facts_by_place(model: Any) -> Mapping[str, Sequence[Any]]:
    """Return what is known of the outputs of nodes; nothing if the model cannot be read.

    Result: for each output, see `GraphFacts.listed`, by the place of the node, as `ID` has it.
    """
    try:
        file = _core.OnnxFile(_readable(model))
    except FormatError:  # such as a weight without all of its elements
        return {}
    imports = versions_of(model.opset_import)
    return _core.GraphFacts(file, file.graph, imports, {}, stated=True).placed()


def _with_types(model: Any) -> Any:
    made = copy_of(model)
    found = facts_by_place(made)
    names = {
        dim.dim_param
        for graph in graphs_within(made.graph)
        for value in (*graph.input, *graph.value_info, *graph.output)
        for dim in _innermost(value.type).tensor_type.shape.dim
    }
    for place, graph in placed_graphs(made.graph):
        stated = {value.name: value for value in (*graph.value_info, *graph.output)}
        for number, node in enumerate(graph.node):
            for name, fact in zip(node.output, found.get(f"{place}{number}", ()), strict=False):
                kind = _kind_of(fact, names)
                if not name or kind is None:
                    continue
                if name not in stated:
                    graph.value_info.add(name=name).type.CopyFrom(kind)
                else:
                    _fill(stated[name].type, kind)
    return made


def _readable(model: Any) -> bytes:
    """Serialize a model, with an output if it has none."""
    if model.graph.output or not model.graph.node:
        return bytes(model.SerializeToString())
    made = copy_of(model)
    made.graph.output.add(name=next(filter(None, made.graph.node[-1].output), ""))
    return bytes(made.SerializeToString())


def placed_graphs(graph: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over a graph and those nested in it, each with its place as `ID` has it."""
    pending = [("", graph)]
    while pending:
        place, graph = pending.pop()
        yield place, graph
        for number, node in enumerate(graph.node):
            for attribute in node.attribute:
                inside = f"{place}{number}.{attribute.name}"
                if attribute.HasField("g"):
                    pending.append((f"{inside}.", attribute.g))
                pending += [(f"{inside}[{i}].", each) for i, each in enumerate(attribute.graphs)]


def _kind_of(fact: Any, names: Collection[str]) -> Any:
    """Return a fact as a TypeProto; None if the element type is not known.

    ``names``: those that dimensions of the model have.
    """
    code, wrappers, sizes, _, _, key = fact
    if not code:
        return None
    kind = inner = require("onnx", extra="onnx").TypeProto()
    for wrapper in wrappers:
        if wrapper == "m":
            inner.map_type.key_type = key
            inner = inner.map_type.value_type
        else:
            field = inner.sequence_type if wrapper == "s" else inner.optional_type
            inner = field.elem_type
    inner.tensor_type.elem_type = code
    if sizes is not None:
        inner.tensor_type.shape.SetInParent()
    for size in sizes or ():
        dim = inner.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size in names:
            dim.dim_param = size
    return kind


def _fill(stated: Any, kind: Any) -> None:
    """Replace a stated type by a known one, without the names of dimensions that it leaves open."""
    before = list(_innermost(stated).tensor_type.shape.dim)
    after = _innermost(kind).tensor_type.shape.dim
    if len(before) == len(after) and stated.WhichOneof("value") == kind.WhichOneof("value"):
        for old, new in zip(before, after, strict=True):
            if old.dim_param and not new.HasField("dim_value"):
                new.dim_param = old.dim_param
    stated.CopyFrom(kind)


def _wrong(model: Any, found: Any) -> Corrections:
    """Return the nodes of a model that ONNX's inference gets wrong, with the right types.

    ``found``: the model with types by facts. Calls of functions with such nodes are among them.
    """
    graphs = list(graphs_within(model.graph))
    calls = questionable_calls(model, graphs)
    wrong: Corrections = {
        (number, place): [None] * len(graphs[number].node[place].output) for number, place in calls
    }
    asked = questionable(graphs)
    if not asked:
        return wrong
    known = Known(found)
    for number, place in asked:
        node = graphs[number].node[place]
        right = [known.type(name, number) for name in node.output]
        alone = known.alone(node, number, model)
        if unsafe_to_infer(alone) is not None:
            continue
        plain = {value.name: value.type for value in _once(alone).graph.output}
        names = known.names(node, number)
        if any(
            differs(plain[name], kind, names)
            for name, kind in zip(node.output, right, strict=True)
            if name
        ):
            wrong[number, place] = right
    return wrong


def _different(plain: Any, found: Any) -> frozenset[str]:
    """Return the values whose types contradict each other in two models."""
    types = [
        {
            value.name: value.type
            for graph in graphs_within(model.graph)
            for value in (*graph.value_info, *graph.output)
        }
        for model in (plain, found)
    ]
    return frozenset(
        name for name, kind in types[0].items() if differs(kind, types[1].get(name), ())
    )


def _once(model: Any) -> Any:
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        return inference.infer_shapes(model)
    except (inference.InferenceError, RuntimeError, ValueError, IndexError, OverflowError):
        return model
    except MemoryError as error:
        raise GraphError("type inference of this model needs more memory than there is") from error
