"""Candidates of a reduction: parts of a model, smaller dimensions, smaller nested graphs."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from passlib import dialects
from passlib.arrays import dtypes
from passlib.dialects import infer
from passlib.dialects.onnx.attributes import CAPTURED, FORMAL, OUTER
from passlib.errors import PasslibError
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.passes.instruments import save_part
from passlib.workbench.delta import smallest
from passlib.workbench.parts import of_symbol, outputs_of, values_of, with_outputs
from passlib.workbench.surviving import survived

_T = TypeVar("_T")


Inputs = Mapping[str, Any]
Failing = Callable[[Model, Inputs], bool]


def input_node(name: str, spec: TypeSpec) -> Node:
    """Return an input of a complete type."""
    assert spec.shape is not None
    assert spec.dtype is not None
    attrs = {"__shape__": str(tuple(spec.shape)), "__dtype__": str(dtypes.code(spec.dtype))}
    return Node(VARIABLE, name, attrs, num_outputs=1)


def changed(
    node: Node,
    inputs: Iterable[Entry],
    control_deps: Iterable[Node],
    *,
    attrs: Mapping[str, str] | None = None,
    subgraphs: Iterable[object] | None = None,
) -> Node:
    """Return a node with other edges, and optionally other attributes and nested graphs."""
    return Node(
        node.op,
        node.name,
        node.attrs if attrs is None else attrs,
        inputs,
        node.num_outputs,
        control_deps,
        node.subgraphs if subgraphs is None else subgraphs,
    )


def with_nodes(
    model: Model,
    replaced: Mapping[Node, Node],
    args: Inputs | None = None,
    aux: Inputs | None = None,
) -> Model:
    """Return a model with some nodes replaced.

    Parameters
    ----------
    replaced : mapping of Node to Node
        Inputs of new nodes are nodes of the model, or new variables.
    args, aux : mapping of str to array, optional
        Changed weights of the model, and weights of new variables.
    """
    made: dict[Node, Node] = {}
    for node in model.symbol.nodes():
        new = replaced.get(node, node)
        inputs = [entry._replace(node=made.get(entry.node, entry.node)) for entry in new.inputs]
        made[node] = changed(new, inputs, [made[dep] for dep in new.control_deps])
    entries = [entry._replace(node=made[entry.node]) for entry in model.symbol.entries]
    symbol = model.symbol.with_entries(entries)
    return of_symbol(model, symbol, {**model.args, **(args or {})}, {**model.aux, **(aux or {})})


class Search:
    """Tests of candidates, with the values of the whole model.

    Attributes
    ----------
    model : Model
        The whole model, which states the ranks of its values.
    runs : int
        Number of tested models.
    """

    def __init__(
        self, model: Model, failing: Failing, inputs: Inputs, *, isolate: bool = False
    ) -> None:
        self._failing = failing
        self._inputs = inputs
        self._isolate = isolate
        self._values = self.values_of(model, inputs) if inputs or not model.inputs else {}
        self.model = _with_ranks(model, self._values)
        # The inputs of a model that does not run have inferred types.
        unknown: list[tuple[TypeSpec, ...]] = []
        types = unknown if self._values else self._guarded(lambda: _types_of(self.model), unknown)
        self._types = dict(zip(self.model.symbol.nodes(), types, strict=False))
        self._outputs = {(e.node, e.index) for e in self.model.symbol.entries}
        self.runs = 0

    def of(self, model: Model, inputs: Inputs) -> Search:
        """Return a search that continues with another model."""
        search = Search(model, self._failing, inputs, isolate=self._isolate)
        search.runs = self.runs
        return search

    def _guarded(self, work: Callable[[], _T], otherwise: _T) -> _T:
        """Call a function, in a forked process if the search is isolated."""
        try:
            return survived(work) if self._isolate else work()
        except PasslibError:
            return otherwise

    def values_of(self, model: Model, inputs: Inputs) -> dict[tuple[str, int], Any]:
        """Compute the values of all nodes; return none if the process crashes."""
        return self._guarded(lambda: values_of(model, inputs), {})

    def changed_fails(self, model: Model, inputs: Inputs) -> bool:
        """Whether a model is sound and fails."""

        def is_sound() -> bool:
            if self._values:
                outputs_of(model, inputs)
            else:
                infer(model.symbol, {})
            return True

        return self._guarded(is_sound, False) and self._saved_fails(model, inputs)

    def fails(self, model: Model, inputs: Inputs) -> bool:
        """Whether a sound model fails."""
        self.runs += 1
        return self._guarded(lambda: self._failing(model, inputs), False)

    def _saved_fails(self, model: Model, inputs: Inputs) -> bool:
        return self.fails(model, inputs) and self._guarded(lambda: _can_be_saved(model), False)

    def part_fails(self, nodes: list[Node], *, constant: bool = False) -> bool:
        """Whether the model of some nodes fails, see `part`."""
        try:
            model, inputs = self.part(nodes, constant=constant)
        except PasslibError:
            return False
        return self._saved_fails(model, inputs)

    def part(self, nodes: Sequence[Node], *, constant: bool = False) -> tuple[Model, Inputs]:
        """Return the model of some nodes, and its inputs.

        The values of other nodes become inputs, or weights if ``constant``.
        """
        inside = set(nodes)
        made: dict[Node, Node] = {}
        standing: dict[tuple[Node, int], Entry] = {}
        inputs = dict(self._inputs)
        weights = dict(self.model.args)
        used: set[tuple[Node, int]] = set()

        def source(entry: Entry) -> Entry:
            if entry.node in inside:
                used.add((entry.node, entry.index))
                return entry._replace(node=made[entry.node])
            if entry.node.is_variable:
                return entry
            value = entry.node, entry.index
            if value not in standing:
                node = self._variable(*value, inputs)
                if constant and node.name in inputs:
                    weights[node.name] = inputs.pop(node.name)
                    node = Node(VARIABLE, node.name, {}, num_outputs=1)
                standing[value] = Entry(node)
            return standing[value]

        for node in nodes:
            made[node] = changed(
                node,
                [source(entry) for entry in node.inputs],
                [made[dep] for dep in node.control_deps if dep in inside],
            )
        entries = []
        for node in nodes:
            indices = [i for i in range(max(node.num_outputs, 1)) if (node, i) in self._outputs]
            if not indices and not any(user is node for user, _ in used):
                indices = [0]
            entries += [Entry(made[node], index) for index in indices]
        # Nodes without outputs, such as sends, are outputs only if there are no others.
        visible = dialects.find(self.model.dialect).visible_outputs
        entries = [entry for entry in entries if visible(entry.node)] or entries
        symbol = self.model.symbol.with_entries(entries)
        part = of_symbol(self.model, symbol, weights)
        return part, {name: inputs[name] for name in part.inputs if name in inputs}

    def _variable(self, node: Node, index: int, inputs: dict[str, Any]) -> Node:
        """Return a variable for a value, and record the value."""
        name = f"{node.name}_value{index or ''}"
        value = self._values.get((node.name, index))
        if isinstance(value, np.ndarray):
            inputs[name] = np.asarray(value)
            spec = TypeSpec(value.dtype, value.shape)
        else:
            specs = self._types.get(node, ())
            spec = specs[index] if index < len(specs) else TypeSpec(None, None)
        if spec.dtype is None or spec.shape is None or None in spec.shape:
            raise PasslibError(f"the value of {node.name!r} cannot be an input")
        return input_node(name, spec)

    def with_constant_weights(self, model: Model, inputs: Inputs) -> Model:
        """Return the model with as many constant weights as possible."""
        for name in [*model.args, *model.aux]:
            array = model.args[name] if name in model.args else model.aux[name]
            if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.size < 2:
                continue
            for value in (1, 0):
                changed = {name: np.full(array.shape, value, array.dtype)}
                is_arg = name in model.args
                candidate = model.with_weights(
                    changed if is_arg else None, None if is_arg else changed
                )
                if self.fails(candidate, inputs):
                    model = candidate
                    break
        return model


def _with_ranks(model: Model, values: Mapping[tuple[str, int], Any]) -> Model:
    """Return a model that states the dtypes and ranks of its values.

    Inference may not determine them for a part of the model, but files state them.
    """
    entries = [
        Entry(node, index)
        for node in model.symbol.nodes()
        for index in range(max(node.num_outputs, 1))
        if isinstance(values.get((node.name, index)), np.ndarray)
    ]
    if not entries:
        return model
    names = with_outputs(model, entries).outputs
    types = {}
    for name, entry in zip(names, entries, strict=True):
        value = values[entry.node.name, entry.index]
        types[name] = TypeSpec(value.dtype, (None,) * value.ndim)
    data = model.data()
    attributes = dialects.find(model.dialect).stating(data.attributes, types)
    return Model.of_data(replace(data, attributes=attributes), model.dialect)


def _can_be_saved(model: Model) -> bool:
    """Whether a file can be written; ONNX requires known ranks of outputs."""
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        try:
            save_part(model, Path(folder))
        except PasslibError:
            return False
    return True


def _types_of(model: Model) -> list[tuple[TypeSpec, ...]]:
    """Return the types of all nodes."""
    outputs = infer(model.symbol, {}).outputs
    return [outputs.get(node, ()) for node in model.symbol.nodes()]


_FEW: Final = 16
"""Integer weights with at most this many elements may be shapes."""

_MOST_TRIES: Final = 400


def with_small_sizes(search: Search, model: Model, inputs: Inputs) -> tuple[Model, Inputs]:
    """Return the model with smaller inputs and weights, and its inputs, see `smaller`."""
    if set(model.inputs) - inputs.keys():
        return model, inputs
    (made,), fed = smaller(
        [model], inputs, lambda models, given: search.changed_fails(models[0], given)
    )
    return made, fed


def smaller(
    models: Sequence[Model], inputs: Inputs, fails: Callable[[Sequence[Model], Inputs], bool]
) -> tuple[Sequence[Model], Inputs]:
    """Return models of common inputs with smaller inputs and weights, and the inputs.

    Equal dimensions usually belong together: a dimension is first reduced wherever it occurs, in
    shapes, small integer weights and attributes; then in single axes, and in pairs of axes. Before
    that, dimensions in small integer weights become -1, if possible.
    """
    budget = _MOST_TRIES
    for stage in (_open_sizes, _sizes_everywhere, _single_axes, _pairs_of_axes):
        pending = stage(models[0], inputs)
        while pending and budget:
            change = pending.pop(0)
            made = [change.of(model, inputs) for model in models]
            if made[0] is None:
                continue
            budget -= 1
            changed = [
                model if new is None else new[0] for model, new in zip(models, made, strict=True)
            ]
            if fails(changed, made[0][1]):
                models, inputs = changed, made[0][1]
                pending = stage(models[0], inputs)
    return models, inputs


def _open_sizes(model: Model, inputs: Inputs) -> list[_Change]:
    return [
        _Change(size, -1, ((name, place),))
        for name, array in _arrays(model, inputs).items()
        if _is_sizes(array) and not (array == -1).any()
        for place, size in enumerate(array.flat)
    ]


def _sizes_everywhere(model: Model, inputs: Inputs) -> list[_Change]:
    sizes = {n for array in _arrays(model, inputs).values() for n in array.shape}
    return [
        _Change(size, smaller, with_attributes=with_attributes)
        for size in sorted(sizes)
        for smaller in _smaller(size)
        for with_attributes in (True, False)
    ]


def _single_axes(model: Model, inputs: Inputs) -> list[_Change]:
    return [
        _Change(size, smaller, (axis,))
        for axis, size in _axes(model, inputs)
        for smaller in _smaller(size)
    ]


def _pairs_of_axes(model: Model, inputs: Inputs) -> list[_Change]:
    return [
        _Change(size, smaller, (one, two))
        for (one, size), (two, other) in itertools.combinations(_axes(model, inputs), 2)
        if size == other
        for smaller in _smaller(size)
    ]


def _axes(model: Model, inputs: Inputs) -> list[tuple[tuple[str, int], int]]:
    return [
        ((name, axis), size)
        for name, array in _arrays(model, inputs).items()
        for axis, size in enumerate(array.shape)
    ]


def _arrays(model: Model, inputs: Inputs) -> dict[str, np.ndarray[Any, Any]]:
    """Return the numeric inputs and weights."""
    fed = {name: inputs[name] for name in model.inputs}
    every = {**fed, **model.args, **model.aux}
    return {name: array for name, array in every.items() if _is_of_numbers(array)}


def _is_of_numbers(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind not in "OSU"


def _is_sizes(array: np.ndarray[Any, Any]) -> bool:
    """Whether a weight may be a shape."""
    return array.dtype == np.int64 and array.ndim == 1 and array.size <= _FEW


def _smaller(size: int) -> list[int]:
    """Return smaller dimensions to try, in ascending order."""
    return [each for each in dict.fromkeys((1, 2, size // 4, size // 2)) if 0 < each < size]


class _Change:
    """A smaller dimension, in all axes or in some.

    Parameters
    ----------
    smaller : int
        -1 for an element of a shape, whose index takes the place of the axis.
    axes : tuple of (str, int)
        The arrays and axes to change (default: all of this size).
    with_attributes : bool
        Change attributes of this value, too.
    """

    def __init__(
        self,
        size: int,
        smaller: int,
        axes: tuple[tuple[str, int], ...] = (),
        *,
        with_attributes: bool = False,
    ) -> None:
        self._size = size
        self._smaller = smaller
        self._axes = axes
        self._with_attributes = with_attributes

    def of(self, model: Model, inputs: Inputs) -> tuple[Model, Inputs] | None:
        """Return the changed model and its inputs; None if nothing changes."""
        fed = {name: self._cut(name, inputs[name]) for name in model.inputs}
        args, aux = (
            {name: self._cut(name, array) for name, array in weights.items()}
            for weights in (model.args, model.aux)
        )
        same = all(
            new[name] is old[name]
            for new, old in ((fed, inputs), (args, model.args), (aux, model.aux))
            for name in new
        )
        if same:
            return None
        replaced: dict[Node, Node] = {}
        for node in model.symbol.nodes():
            if node.name in fed and node.is_variable and fed[node.name] is not inputs[node.name]:
                array = fed[node.name]
                replaced[node] = input_node(node.name, TypeSpec(array.dtype, array.shape))
            elif self._with_attributes and not node.is_variable:
                replaced[node] = self._with_changed_attributes(node)
        try:
            candidate = with_nodes(model, replaced, args, aux)
        except PasslibError:
            return None
        return candidate, fed

    def _cut(self, name: str, array: Any) -> Any:
        """Return the smaller array, or the same object."""
        if not _is_of_numbers(array):
            return array
        if self._smaller < 0:
            return self._with_open_size(name, array)
        axes = [
            axis
            for axis, size in enumerate(array.shape)
            if size == self._size and (not self._axes or (name, axis) in self._axes)
        ]
        if axes:
            places = [slice(None)] * array.ndim
            for axis in axes:
                places[axis] = slice(self._smaller)
            array = np.ascontiguousarray(array[tuple(places)])
        if not self._axes and _is_sizes(array) and (array == self._size).any():
            array = np.where(array == self._size, np.int64(self._smaller), array)
        return array

    def _with_open_size(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        places = [place for other, place in self._axes if other == name]
        if places:
            array = array.copy()
            array[places] = -1
        return array

    def _with_changed_attributes(self, node: Node) -> Node:
        attrs = {
            key: value
            if key.startswith("__")
            else re.sub(rf"(?<![\w.]){self._size}(?![\w.])", str(self._smaller), value)
            for key, value in node.attrs.items()
        }
        return changed(node, node.inputs, node.control_deps, attrs=attrs)


def with_inlined(search: Search, model: Model, inputs: Inputs) -> Model | None:
    """Return the model with one nested graph inlined, if it still fails; otherwise None.

    For If, the taken branch is tried before the other one; for Loop, one iteration.
    """
    nodes = [node for node in model.symbol.nodes() if node.subgraphs and FORMAL in node.attrs]
    if not nodes:
        return None
    computed = search.values_of(model, inputs)
    known = {name: np.asarray(array) for name, array in {**model.args, **inputs}.items()}
    for node in nodes:
        slots = {"If": 1, "Loop": 2}.get(node.op, 0)
        values = [
            known.get(entry.node.name)
            if entry.node.is_variable
            else computed.get((entry.node.name, entry.index))
            for entry in node.inputs[:slots]
        ]
        for bound in _bound(model, node, values):
            try:
                candidate = bound.optimize_for("resolveIf", skip_infer=True)
            except PasslibError:
                continue
            if len(_nested_in(candidate.symbol)) < len(_nested_in(model.symbol)) and (
                search.changed_fails(candidate, inputs)
            ):
                return candidate
    return None


def _bound(model: Model, node: Node, values: Sequence[Any]) -> Iterator[Model]:
    """Iterate over models with a constant condition, or at most one iteration."""
    known = [
        (slot, value)
        for slot, value in enumerate(values)
        if isinstance(value, np.ndarray) and value.size == 1
    ]
    if not known:
        return
    for is_other in (False, True) if node.op == "If" else (False,):
        given = list(node.inputs)
        weights: dict[str, Any] = {}
        for slot, value in known:
            name = f"{node.name}_fixed{slot}"
            is_count = value.dtype != np.bool_
            weights[name] = np.asarray(np.minimum(value, 1) if is_count else value ^ is_other)
            given[slot] = Entry(Node(VARIABLE, name, {}, num_outputs=1))
        yield with_nodes(model, {node: changed(node, given, node.control_deps)}, weights)


def with_smaller_nested(search: Search, model: Model, inputs: Inputs) -> Model:
    """Return the model with fewer nodes in its nested graphs.

    A removed node is replaced by its first input.
    """
    for node in [node for node in model.symbol.nodes() if FORMAL in node.attrs]:
        name = node.name
        for number in range(len(node.subgraphs)):
            model = _with_smaller(search, model, inputs, (name, number))
    return model


def _with_smaller(search: Search, model: Model, inputs: Inputs, place: tuple[str, int]) -> Model:
    name, number = place
    node = next(each for each in model.symbol.nodes() if each.name == name)
    body: ModelGraph = node.subgraphs[number]
    inner = [each for each in _walk(body) if not each.is_variable]

    def candidate(kept: Sequence[Node]) -> Model:
        cut = _cut(body, set(inner) - set(kept))
        graphs = [*node.subgraphs[:number], cut, *node.subgraphs[number + 1 :]]
        return with_nodes(model, {node: _compact(node, graphs)})

    def fails(kept: list[Node]) -> bool:
        try:
            return search.changed_fails(candidate(kept), inputs)
        except PasslibError:
            return False

    kept = smallest(inner, fails)
    return candidate(kept) if len(kept) < len(inner) else model


def _cut(body: ModelGraph, gone: set[Node]) -> ModelGraph:
    """Return a nested graph without some nodes, at all levels."""
    made: dict[Node, Node] = {}
    instead: dict[Node, Entry] = {}

    def source(entry: Entry) -> Entry:
        while entry.node in instead:
            entry = instead[entry.node]
        return entry._replace(node=made[entry.node])

    for node in body.nodes():
        if node in gone and node.inputs and node.num_outputs == 1:
            instead[node] = node.inputs[0]
            continue
        needed = [made[dep] for dep in node.control_deps if dep in made]
        new = changed(node, [source(entry) for entry in node.inputs], needed)
        cut = [_cut(graph, gone) for graph in node.subgraphs]
        made[node] = _compact(new, cut) if cut else new
    return body.with_entries([source(entry) for entry in body.entries])


def _compact(node: Node, graphs: Sequence[ModelGraph]) -> Node:
    """Return a node with other nested graphs, and the values that these capture as inputs."""
    if FORMAL not in node.attrs:
        return node
    formal = int(node.attrs[FORMAL])
    inner = [each for graph in graphs for each in graph.nodes() if OUTER in each.attrs]
    captured = sorted({place for each in inner if (place := int(each.attrs[OUTER])) >= formal})
    places = {old: formal + new for new, old in enumerate(captured)}
    inputs = [*node.inputs[:formal], *(node.inputs[old] for old in captured)]
    return changed(
        node,
        inputs,
        node.control_deps,
        attrs={**node.attrs, CAPTURED: str(len(captured))},
        subgraphs=[_renumbered(graph, places) for graph in graphs],
    )


def _renumbered(graph: ModelGraph, places: Mapping[int, int]) -> ModelGraph:
    """Return a nested graph with other input indices in its captured variables."""
    made: dict[Node, Node] = {}
    for node in graph.nodes():
        attrs = dict(node.attrs)
        if OUTER in attrs:
            attrs[OUTER] = str(places.get(int(attrs[OUTER]), int(attrs[OUTER])))
        inputs = [entry._replace(node=made[entry.node]) for entry in node.inputs]
        made[node] = changed(node, inputs, [made[dep] for dep in node.control_deps], attrs=attrs)
    return graph.with_entries([entry._replace(node=made[entry.node]) for entry in graph.entries])


def _nested_in(symbol: ModelGraph) -> list[Node]:
    return [node for node in _walk(symbol) if node.subgraphs]


def _walk(symbol: ModelGraph) -> Iterator[Node]:
    """Iterate over the nodes of a graph and its nested graphs."""
    pending = [symbol]
    while pending:
        for node in pending.pop().nodes():
            yield node
            pending += node.subgraphs
