"""Execution of a graph on arrays, with built-in operators and those of libraries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays.ndarray import NDArray
from passlib.arrays.shape_mode import is_np_shape
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import Dialect
from passlib.errors import GraphError
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node
from passlib.library.operator import Operator
from passlib.lowering import Graph, TypeSpec
from passlib.lowering.walk import Overriding
from passlib.runtime.custom_node import CustomNode, Done, library_operators
from passlib.runtime.cutting import Call, Piece, Value, cut
from passlib.runtime.sessions import Cache, Sessions
from passlib.runtime.settings import DEFAULT, Settings


@dataclass
class Outcome:
    """The results of a run.

    Attributes
    ----------
    outputs : list of NDArray or sparse array
        One for each output of the graph; no two share memory.
    updates : dict of str to NDArray
        New content of the variables that built-in operators write to, such as running means in
        training.
    mutated : dict of str to array
        New content of the variables that operators of libraries write to. Inputs never change.
    record : list of Done
        The nodes of libraries' operators in execution order, if requested.
    """

    outputs: list[Any]
    updates: dict[str, NDArray] = field(default_factory=dict)
    mutated: dict[str, Any] = field(default_factory=dict)
    record: list[Done] = field(default_factory=list)


class Plan:
    """A graph cut at the operators of libraries, ready to run many times.

    ``dialect``: that of the graph; it lowers the pieces of built-in operators. ``operators``: the
    libraries' operators that the graph has, by name. ``overriding``: attribute values that replace
    a built-in node's own.
    """

    def __init__(
        self,
        graph: Graph,
        dialect: Dialect,
        operators: Mapping[str, Operator],
        overriding: Overriding,
    ) -> None:
        nodes = graph.nodes()
        self._dialect = dialect
        self._entries = graph.entries
        self._variables = {node.name: node for node in nodes if node.is_variable}
        self._custom = {
            node: CustomNode(node, operators[node.op]) for node in nodes if node.op in operators
        }
        self._cut = cut(graph, self._custom.__contains__, self._written, overriding)
        self._sessions = {
            step: Sessions(step, dialect) for step in self._cut.steps if isinstance(step, Piece)
        }
        self._mutable = {
            custom.node.inputs[index].node.name
            for custom in self._custom.values()
            for index in custom.mutated
            if custom.node.inputs[index].node.is_variable
        }

    def _written(self, node: Node) -> Collection[int]:
        custom = self._custom.get(node)
        if custom is not None:
            return custom.mutated
        return self._dialect.mutable_inputs(node)

    def run(
        self,
        feeds: Mapping[str, Any],
        constants: Mapping[str, Any],
        *,
        train: bool = False,
        record: bool = False,
        settings: Settings = DEFAULT,
    ) -> Outcome:
        """Compute the outputs. Parameters and errors are those of `Runner.run`."""
        unknown = sorted(set(feeds) - set(self._variables))
        if unknown:
            raise GraphError(
                f"the graph has no variable {', '.join(map(repr, unknown))}; "
                f"it has {', '.join(sorted(self._variables)) or 'none at all'}"
            )
        given = {**constants, **feeds}
        values: dict[Value, Any] = {
            (node, 0): given[name] for name, node in self._variables.items() if name in given
        }
        outcome = Outcome([])
        own: set[Value] = set()
        for step, last_uses in zip(self._cut.steps, self._cut.last_uses, strict=True):
            if isinstance(step, Piece):
                fed = self._mutable | feeds.keys() | outcome.updates.keys()
                outcome.updates |= self._run_piece(step, values, fed, settings, train=train)
            else:
                done = self._call(step, values, own)
                if record:
                    outcome.record.append(done)
            for value in last_uses:
                values.pop(value, None)
        outcome.mutated = {node.name: values[node, 0] for node, _ in own if node.is_variable}
        outcome.outputs = _outputs(values, self._entries)
        return outcome

    def _run_piece(
        self,
        piece: Piece,
        values: dict[Value, Any],
        fed: Set[str],
        settings: Settings,
        *,
        train: bool,
    ) -> dict[str, NDArray]:
        """Run built-in operators; later steps see their writes to variables."""
        if not piece.entries and not train:
            return {}
        feeds = {name: values[value] for name, value in piece.boundary.items()}
        constants: dict[str, Any] = {}
        for name in piece.variables:
            value = self._variables[name], 0
            if value in values:
                (feeds if name in fed else constants)[name] = values[value]
        outputs, updates = self._sessions[piece].run_updating(
            feeds, constants, settings, train=train
        )
        values.update(zip(piece.outputs, outputs, strict=True))
        values.update({(self._variables[name], 0): array for name, array in updates.items()})
        return updates

    def _call(self, call: Call, values: dict[Value, Any], own: set[Value]) -> Done:
        """Run one operator of a library on copies, made once a run, of the inputs it mutates."""
        node, custom = call.node, self._custom[call.node]
        for index in custom.mutated:
            entry = node.inputs[index]
            value = entry.node, entry.index
            if value not in own:
                values[value] = _copied(_look_up(values, entry, blame(node)))
                own.add(value)
        done = custom.forward([_look_up(values, entry, blame(node)) for entry in node.inputs])
        values.update({(node, index): done.outputs[index] for index in call.outputs})
        return done


def _look_up(values: Mapping[Value, Any], entry: Entry, user: str) -> Any:
    value = values.get((entry.node, entry.index))
    if value is not None:
        return value
    if entry.node.is_variable:
        raise GraphError(
            f"{user}: variable {entry.node.name!r} is neither among the inputs nor among the "
            "parameters"
        )
    raise GraphError(f"{user}: {blame(entry.node)} has no output {entry.index}")


def _copied(array: Any) -> Any:
    return array.copy() if isinstance(array, BaseSparseNDArray) else np.array(array, order="C")


def _outputs(values: Mapping[Value, Any], entries: Sequence[Entry]) -> list[Any]:
    """Return an array for each output that shares memory with no input and no other output."""
    seen: set[Value] = set()
    outputs = []
    for entry in entries:
        array = _look_up(values, entry, "the outputs")
        value = entry.node, entry.index
        if entry.node.is_variable or value in seen:
            array = _copied(array)
        seen.add(value)
        outputs.append(array if isinstance(array, BaseSparseNDArray) else array.view(NDArray))
    return outputs


_KEPT = 8
"""Plans kept for one graph in which sizes depend on the inputs."""


class Runner:
    """Runs a symbol on arrays.

    A graph of built-in operators is one model of ONNX Runtime. If libraries own some of its
    operators, it is cut at these, see `passlib.runtime.runner.Plan`. ``dialect``: that of the
    graph.
    """

    def __init__(self, graph: Graph, dialect: Dialect) -> None:
        self._graph = graph
        self._dialect = dialect
        self._sessions = Sessions(graph, dialect)
        self._built_in = False
        self._owned: dict[str, Operator] = {}
        self._plans: Cache[Plan] = Cache(_KEPT)

    def run(
        self,
        feeds: Mapping[str, Any],
        constants: Mapping[str, Any],
        *,
        train: bool = False,
        record: bool = False,
        settings: Settings = DEFAULT,
    ) -> Outcome:
        """Compute the outputs.

        Raises `FormatError` if a file that constants are mapped from was changed; `GraphError` if
        the arrays do not fit the graph; `UnsupportedError` if something in the graph has no
        faithful lowering; `OperatorError` if an operator of a library failed; `PasslibError` if
        ONNX Runtime is absent, or failed.

        Parameters
        ----------
        feeds : mapping of str to array
            Variables whose values are read at each run.
        constants : mapping of str to array
            Variables that are compiled in. A session is reused only for the very same array
            objects, whose elements must not have changed since. A ``types.MappingProxyType`` is
            compared by identity: nobody changes what it shows.
        train : bool
            Run as in training.
        record : bool
            Record what gradients need.
        settings : Settings
            Of ONNX Runtime.
        """
        arrays = [*feeds.values(), *constants.values()]
        _core.check_files(arrays)
        if not self._built_in and not self._owned:
            self._owned = library_operators(self._graph, self._dialect)
        if self._owned:
            plan = self._plan(feeds, constants, train=train)
            outcome = plan.run(feeds, constants, train=train, record=record, settings=settings)
        else:
            outputs, updates = self._sessions.run_updating(feeds, constants, settings, train=train)
            # The graph ran, so it has no operators that only a library loaded later could bring.
            self._built_in = True
            outcome = Outcome(list(outputs), updates)
        _core.check_files(arrays)
        return outcome

    def _plan(self, feeds: Mapping[str, Any], constants: Mapping[str, Any], *, train: bool) -> Plan:
        """Return the plan: one for all inputs, unless sizes in the graph depend on them."""
        signature = None
        known = {}
        if self._dialect.has_open_sizes(self._graph):
            known = {
                name: TypeSpec(array.dtype, tuple(array.shape))
                for name, array in sorted({**constants, **feeds}.items())
            }
            signature = (tuple(known.items()), train, is_np_shape())

        def make() -> Plan:
            sizes = self._dialect.open_sizes(self._graph, known, train=train)
            return Plan(self._graph, self._dialect, self._owned, sizes)

        return self._plans.get(signature, make)
