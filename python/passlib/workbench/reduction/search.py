"""Candidates of a reduction, and their tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from passlib import dialects
from passlib.arrays import dtypes
from passlib.dialects import infer
from passlib.errors import PasslibError
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.passes.instruments import save_part
from passlib.workbench.parts import of_symbol, outputs_of, with_outputs
from passlib.workbench.per_node import values_of
from passlib.workbench.reduction.survived import survived

Inputs = Mapping[str, Any]
Failing = Callable[[Model, Inputs], bool]
_T = TypeVar("_T")


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
    """Return a node like another one, with other edges; attributes and nested graphs if given."""
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
    model : Model
    replaced : mapping of Node to Node
        Inputs of new nodes are nodes of the model, or new variables.
    args, aux : mapping of str to array, optional
        Weights other than the model's, and of the new variables.
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
    """Tests of candidates, with the values that the whole model computes.

    Attributes
    ----------
    model : Model
        The whole model, which states the ranks of its values.
    runs : int
        How often models were tested.
    """

    def __init__(
        self, model: Model, failing: Failing, inputs: Inputs, *, isolate: bool = False
    ) -> None:
        self._failing = failing
        self._inputs = inputs
        self._isolate = isolate
        self._values = self.values_of(model, inputs) if inputs or not model.inputs else {}
        self.model = _with_ranks(model, self._values)
        # Of a model that does not run, inputs have the types that are inferred.
        unknown: list[tuple[TypeSpec, ...]] = []
        types = unknown if self._values else self._guarded(lambda: _types_of(self.model), unknown)
        self._types = dict(zip(self.model.symbol.nodes(), types, strict=False))
        self._outputs = {(e.node, e.index) for e in self.model.symbol.entries}
        self.runs = 0

    def of(self, model: Model, inputs: Inputs) -> Search:
        """Return a search that goes on with another model."""
        search = Search(model, self._failing, inputs, isolate=self._isolate)
        search.runs = self.runs
        return search

    def _guarded(self, work: Callable[[], _T], otherwise: _T) -> _T:
        """Call a function, where candidates are isolated in a process that it may crash."""
        try:
            return survived(work) if self._isolate else work()
        except PasslibError:
            return otherwise

    def values_of(self, model: Model, inputs: Inputs) -> dict[tuple[str, int], Any]:
        """Compute the values of all nodes; none of a model that crashes its process."""
        return self._guarded(lambda: values_of(model, inputs), {})

    def changed_fails(self, model: Model, inputs: Inputs) -> bool:
        """Whether a model fails that need not be sound, and is."""

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

        Values of the other nodes are inputs, or weights if they are to be constant.
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
        # A node without outputs, such as one that sends, is one only where there is no other.
        visible = dialects.find(self.model.dialect).visible_outputs
        entries = [entry for entry in entries if visible(entry.node)] or entries
        symbol = self.model.symbol.with_entries(entries)
        part = of_symbol(self.model, symbol, weights)
        return part, {name: inputs[name] for name in part.inputs if name in inputs}

    def _variable(self, node: Node, index: int, inputs: dict[str, Any]) -> Node:
        """Return an input that stands for a value, and record the value."""
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
        """Return the model with those weights constant that may be."""
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
    """Return a model that states the types and ranks of its values.

    A part of it may be such that inference does not know these, and yet files state them.
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
    """Whether the model can be written; ONNX must be able to infer the ranks of its outputs."""
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        try:
            save_part(model, Path(folder))
        except PasslibError:
            return False
    return True


def _types_of(model: Model) -> list[tuple[TypeSpec, ...]]:
    """Return the types of all nodes; raises if shapes contradict each other, maybe the fault."""
    outputs = infer(model.symbol, {}).outputs
    return [outputs.get(node, ()) for node in model.symbol.nodes()]
