"""The smallest model that still shows a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects import infer
from passlib.errors import PasslibError
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.workbench.delta import smallest
from passlib.workbench.failing import NothingFailsError
from passlib.workbench.parts import of_symbol
from passlib.workbench.per_node import values_of

__all__ = ["Reduced", "reduce"]

Inputs = Mapping[str, Any]
Failing = Callable[[Model, Inputs], bool]


@dataclass(frozen=True)
class Reduced:
    """What `reduce` found.

    Attributes
    ----------
    model : Model
    inputs : mapping of str to array
        For the inputs of the model; values that the nodes before them computed are recorded ones.
    nodes_before, nodes : int
        Numbers of operators.
    runs : int
        How often models were tested.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> model = pl.Model(pl.sym.relu(pl.sym.exp(pl.sym.relu(x), name="guilty")))
    >>> reduced = pl.workbench.reduce(
    ...     model,
    ...     lambda found, inputs: any(node.op == "exp" for node in found.symbol.nodes()),
    ...     {"x": pl.nd.ones((2,))},
    ... )
    >>> reduced.nodes_before, reduced.nodes
    (3, 1)
    """

    model: Model
    inputs: Inputs
    nodes_before: int
    nodes: int
    runs: int

    def __str__(self) -> str:
        return f"{self.nodes_before} -> {self.nodes} nodes in {self.runs} runs: {self.model!r}"


def reduce(model: Model, failing: Failing, inputs: Inputs) -> Reduced:
    """Make a model smaller while it still fails.

    Nodes are left out by delta debugging; values that the others take from them become inputs, with
    the values that the model computes from ``inputs``. Then outputs are left out, and weights
    become constant, all ones or all zeros.

    Parameters
    ----------
    model : Model
    failing : callable
        Whether a model, run on the inputs that it is given along with it, shows the fault. A
        model on which it raises a `PasslibError` does not show it.
    inputs : mapping of str to array
        For the model. Empty for a model that does not run; then types are inferred, and the
        reduced model is given no inputs.

    Returns
    -------
    Reduced

    Raises
    ------
    NothingFailsError
        The model does not fail.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> model = pl.Model(pl.sym.relu(pl.sym.exp(pl.sym.relu(x), name="guilty")))
    >>> reduced = pl.workbench.reduce(
    ...     model,
    ...     lambda found, inputs: any(node.op == "exp" for node in found.symbol.nodes()),
    ...     {"x": pl.nd.ones((2,))},
    ... )
    >>> [node.op for node in reduced.model.symbol.nodes()]
    ['null', 'exp']
    """
    search = _Search(model, failing, inputs)
    if not search.fails(model, inputs):
        raise NothingFailsError("nothing fails: the model does not show the fault")
    nodes = [node for node in model.symbol.nodes() if not node.is_variable]
    kept = smallest(nodes, search.part_fails)
    part, fed = search.part(kept) if len(kept) < len(nodes) else (model, inputs)
    outputs = list(part.symbol.entries)
    if len(outputs) > 1:
        fewer = smallest(outputs, lambda some: search.fails(_with(part, some), fed))
        part = _with(part, fewer) if len(fewer) < len(outputs) else part
    part = search.with_constant_weights(part, fed)
    left = [node for node in part.symbol.nodes() if not node.is_variable]
    return Reduced(
        part,
        {name: fed[name] for name in part.inputs if name in fed},
        len(nodes),
        len(left),
        search.runs,
    )


class _Search:
    """Tests of candidates, with the values that the whole model computes."""

    def __init__(self, model: Model, failing: Failing, inputs: Inputs) -> None:
        self._model = model
        self._failing = failing
        self._inputs = inputs
        self._values = values_of(model, inputs) if inputs or not model.inputs else {}
        # Of a model that does not run, inputs have the types that are inferred.
        self._types = {} if self._values else _types_of(model)
        self._outputs = {(e.node, e.index) for e in model.symbol.entries}
        self.runs = 0

    def fails(self, model: Model, inputs: Inputs) -> bool:
        self.runs += 1
        try:
            return self._failing(model, inputs)
        except PasslibError:
            return False

    def part_fails(self, nodes: list[Node]) -> bool:
        try:
            model, inputs = self.part(nodes)
        except PasslibError:
            return False
        return self.fails(model, inputs)

    def part(self, nodes: Sequence[Node]) -> tuple[Model, Inputs]:
        """Return the model of some nodes, and its inputs."""
        inside = set(nodes)
        made: dict[Node, Node] = {}
        standing: dict[tuple[Node, int], Entry] = {}
        inputs = dict(self._inputs)
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
                standing[value] = Entry(node)
            return standing[value]

        for node in nodes:
            made[node] = Node(
                node.op,
                node.name,
                node.attrs,
                [source(entry) for entry in node.inputs],
                node.num_outputs,
                [made[dep] for dep in node.control_deps if dep in inside],
                node.subgraphs,
            )
        entries = []
        for node in nodes:
            indices = [i for i in range(max(node.num_outputs, 1)) if (node, i) in self._outputs]
            if not indices and not any(user is node for user, _ in used):
                indices = [0]
            entries += [Entry(made[node], index) for index in indices]
        symbol = self._model.symbol.with_entries(entries)
        part = of_symbol(self._model, symbol)
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
        attrs = {"__shape__": str(tuple(spec.shape)), "__dtype__": str(dtypes.code(spec.dtype))}
        return Node(VARIABLE, name, attrs, num_outputs=1)

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


def _types_of(model: Model) -> Mapping[Node, tuple[TypeSpec, ...]]:
    try:
        return infer(model.symbol, {}).outputs
    except PasslibError:  # shapes that contradict each other may be the fault
        return {}


def _with(model: Model, entries: Sequence[Entry]) -> Model:
    return of_symbol(model, model.symbol.with_entries(entries))
